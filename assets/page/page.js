// The script of a page that steps: it draws what the page contains, and asks nobody for anything.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const articles = [...document.querySelectorAll("article.step")];
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const count = articles.length;
  const framed = location.protocol === "about:"; // a link would lead out of a notebook's frame
  let at = 0;
  let theme = root.dataset.theme;
  let playing = false;
  let timer = 0;
  let shown = null; // the pieces in the picture

  $("shared").innerHTML = data.shared;

  // Pictures: each is a change of the one before, in each theme.
  const drawn = {};
  function pictures(name) {
    if (drawn[name]) return drawn[name];
    let last = [];
    drawn[name] = data.pictures[name].map((step) =>
      step.map((edits) => {
        const now = [];
        for (const edit of edits) {
          if (typeof edit === "number") now.push(edit);
          else for (let n = 0; n < edit[1]; n++) now.push(last[edit[0] + n]);
        }
        last = now;
        return now;
      }),
    );
    return drawn[name];
  }
  const svg = (pieces) => pieces.map((n) => data.pieces[n]).join("");

  function draw(pieces) {
    if (pieces === shown) return;
    shown = pieces;
    $("picture").innerHTML = svg(pieces);
  }

  // Motion: the pictures of what moves, one after another, and then the state that is reached.
  function move(number, done) {
    clearTimeout(timer);
    const all = pictures(theme)[number];
    const each = (1000 * data.seconds[number]) / Math.max(all.length - 1, 1);
    let k = 0;
    const next = () => {
      draw(all[k++]);
      if (k < all.length) timer = setTimeout(next, each);
      else if (done) timer = setTimeout(done, Math.max(600, all.length > 1 ? 300 : each));
    };
    next();
  }

  const answer = (n) => articles[n].querySelector(".answer");
  const waits = (n) => answer(n) !== null && answer(n).hidden;

  // What is read aloud: texts with their formulas, but no buttons, which are reached by Tab.
  function say(box) {
    const copy = box.cloneNode(true);
    for (const each of copy.querySelectorAll("[hidden], .ask, .check, .guess")) each.remove();
    for (const each of copy.querySelectorAll("svg")) each.replaceWith(each.getAttribute("aria-label"));
    for (const each of copy.querySelectorAll("h2, p, label, .choice")) each.append(" ");
    $("live").textContent = copy.textContent.replace(/\s+/g, " ").trim();
  }

  function show(number, { moves = false, quiet = false } = {}) {
    clearTimeout(timer);
    at = Math.min(Math.max(number, 0), count - 1);
    articles.forEach((article, n) => article.classList.toggle("here", n === at));
    const all = pictures(theme)[at];
    if (moves && all.length > 1 && !calm.matches) move(at, playing ? onward : null);
    else {
      draw(all[all.length - 1]);
      if (playing) timer = setTimeout(onward, 1000 * Math.max(data.seconds[at], 0.7));
    }
    $("back").disabled = $("first").disabled = at === 0;
    $("forth").disabled = $("last").disabled = at === count - 1 && !waits(at);
    $("place").value = at + 1;
    $("count").textContent = `${at + 1} of ${count}`;
    $("picture").setAttribute("aria-label", data.seen[at]);
    if (!quiet) say(articles[at].querySelector(".said"));
    const hash = `#${at + 1}`;
    if (!framed && location.hash !== hash) history.replaceState(null, "", hash);
    hide();
  }

  function reveal() {
    const box = answer(at);
    box.hidden = false;
    const own = articles[at].querySelectorAll(".ask, .check, .choice, .guess");
    for (const each of own) each.disabled = true;
    articles[at].querySelector(".ask").hidden = true;
    say(box);
    $("forth").disabled = at === count - 1;
  }

  function forth() {
    if (waits(at)) reveal();
    else if (at < count - 1) show(at + 1, { moves: true });
  }
  const back = () => show(at - 1);

  function play(on) {
    playing = on;
    clearTimeout(timer);
    $("play").textContent = on ? "Pause" : "Play";
    $("play").setAttribute("aria-pressed", String(on));
    if (on) onward();
  }
  function onward() {
    if (waits(at) || at === count - 1) play(false); // a question waits for the reader
    else show(at + 1, { moves: true });
  }

  const toggleNotes = () => {
    const on = root.classList.toggle("notes");
    $("notes").setAttribute("aria-pressed", String(on));
  };
  function setTheme(name) {
    theme = name;
    root.dataset.theme = name;
    shown = null;
    const all = pictures(theme)[at];
    draw(all[all.length - 1]);
    $("theme").textContent = Object.keys(data.pictures).find((other) => other !== name) || name;
  }
  const otherTheme = () => {
    const names = Object.keys(data.pictures);
    setTheme(names[(names.indexOf(theme) + 1) % names.length]);
  };

  // Values under the pointer.
  const parsed = new Map();
  function rows(text) {
    if (!parsed.has(text)) parsed.set(text, text.split(";").map((row) => row.split(",")));
    return parsed.get(text);
  }
  const index = (place, size) => Math.min(Math.max(Math.floor(place), 0), size - 1);

  function cellAt(x, y) {
    if (!data.values[at]) return null;
    const place = data.places[data.values[at][0]];
    for (const [name, kind, left, top, wide, high, depth] of place.boxes) {
      if (x < left || y < top || x > left + wide || y > top + high) continue;
      const row = index(place.view[1] + (y - top) / place.cell[1], place.size[0]);
      const key = index(place.view[0] + (x - left) / place.cell[0], place.size[1]);
      if (kind === "pair") return [name, row, key];
      if (kind === "key") return [name, key, index(((y - top) / high) * depth, depth)];
      return [name, row, index(((x - left) / wide) * depth, depth)];
    }
    return null;
  }
  function valueOf([name, row, column]) {
    const run = data.runs[data.values[at][1]];
    const about = run.tensors[name];
    const sheet = run.steps[data.values[at][2]][name];
    if (!about || !sheet) return "";
    const [high, wide] = about.block;
    const across = Math.ceil(about.size[1] / wide);
    const block = sheet[Math.floor(row / high) * across + Math.floor(column / wide)];
    const found = rows(run.blocks[block])[row % high][column % wide];
    const places = about.size[1] === 1 ? `${row}` : `${row}, ${column}`;
    if (found[0] === "~") return `${about.name}[${places}]: ${run.words[+found.slice(1)]}`;
    const [first, second] = found.split("=");
    return second === undefined
      ? `${about.name}[${places}] = ${first}`
      : `${first}[${places}] = ${second}`;
  }
  function hide() {
    $("value").hidden = true;
  }
  function read(event) {
    const box = $("picture").getBoundingClientRect();
    const [left, top, wide, high] = data.view;
    const scale = Math.min(box.width / wide, box.height / high);
    const x = left + (event.clientX - box.left - (box.width - wide * scale) / 2) / scale;
    const y = top + (event.clientY - box.top - (box.height - high * scale) / 2) / scale;
    const cell = cellAt(x, y);
    const text = cell && valueOf(cell);
    if (!text) return hide();
    const tip = $("value");
    tip.textContent = text;
    tip.hidden = false;
    const away = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - away.width - 4)}px`;
    tip.style.top = `${Math.min(event.clientY + 18, innerHeight - away.height - 4)}px`;
  }
  $("picture").addEventListener("pointermove", read);
  $("picture").addEventListener("pointerdown", read);
  $("picture").addEventListener("pointerleave", hide);

  // Keys, touch, buttons.
  const keys = {
    ArrowRight: forth, ArrowDown: forth, PageDown: forth, " ": forth,
    ArrowLeft: back, ArrowUp: back, PageUp: back,
    Home: () => show(0), End: () => show(count - 1),
    n: toggleNotes, p: () => play(!playing), t: otherTheme,
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const own = event.target.closest("button, a, summary, input");
    if (own && (event.key === " " || event.key === "Enter")) return;
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    if (act !== keys.p && playing) play(false);
    act();
  });
  let touched = null;
  $("picture").addEventListener("touchstart", (event) => {
    touched = event.touches.length === 1 ? event.touches[0] : null;
  }, { passive: true });
  $("picture").addEventListener("touchend", (event) => {
    if (!touched) return;
    const end = event.changedTouches[0];
    const across = end.clientX - touched.clientX;
    if (Math.abs(across) > 40 && Math.abs(across) > Math.abs(end.clientY - touched.clientY)) {
      (across < 0 ? forth : back)();
    }
    touched = null;
  });
  const stop = (act) => () => {
    if (playing) play(false);
    act();
  };
  $("first").onclick = stop(() => show(0));
  $("back").onclick = stop(back);
  $("forth").onclick = stop(forth);
  $("last").onclick = stop(() => show(count - 1));
  $("play").onclick = () => play(!playing);
  $("notes").onclick = toggleNotes;
  $("theme").onclick = otherTheme;
  $("place").oninput = stop(() => show(+$("place").value - 1));
  for (const button of document.querySelectorAll(".ask")) button.onclick = stop(reveal);

  // A guess is compared with what was computed: a choice, a column, or a number near enough.
  function guess(box, text) {
    const number = parseFloat(text.replace(/\s/g, "").replace("\u2212", "-").replace(",", "."));
    if (Number.isNaN(number)) return;
    const apart = Math.abs(number - parseFloat(box.dataset.truth));
    const right = apart <= parseFloat(box.dataset.within) * (1 + 1e-9);
    box.querySelector(".verdict").textContent = right ? "Right." : "Not quite.";
    reveal();
  }
  for (const button of document.querySelectorAll(".choice")) {
    button.onclick = stop(() => guess(button.closest(".question"), button.value));
  }
  for (const field of document.querySelectorAll(".guess")) {
    const box = field.closest(".question");
    box.querySelector(".check").onclick = stop(() => guess(box, field.value));
    field.onkeydown = (event) => {
      event.stopPropagation(); // arrows and letters are typed here
      if (event.key === "Enter") guess(box, field.value);
    };
  }

  // On paper every step has its picture and its answer.
  addEventListener("beforeprint", () => {
    const paper = data.pictures.light ? "light" : theme;
    articles.forEach((article, n) => {
      const all = pictures(paper)[n];
      article.querySelector(".paper").innerHTML = svg(all[all.length - 1]);
    });
    root.dataset.theme = paper;
  });
  addEventListener("afterprint", () => {
    for (const paper of document.querySelectorAll(".paper")) paper.replaceChildren();
    root.dataset.theme = theme;
  });

  const wanted = () => (parseInt(location.hash.slice(1), 10) || data.start + 1) - 1;
  addEventListener("hashchange", () => {
    if (wanted() !== at) show(wanted());
  });
  if (framed) for (const link of document.querySelectorAll("h2 a")) link.removeAttribute("href");
  $("theme").hidden = Object.keys(data.pictures).length < 2;
  root.classList.add("steps");
  setTheme(theme);
  show(wanted(), { quiet: true });
})();
