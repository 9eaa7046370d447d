"use strict";
// The speaker's view shows every slide as a still.
if (new URLSearchParams(location.search).has("receiver")) {
  for (const film of document.querySelectorAll("video")) {
    const still = new Image();
    still.src = film.poster;
    still.alt = film.getAttribute("aria-label");
    film.replaceWith(still);
  }
}
for (const film of document.querySelectorAll("video")) {
  film.addEventListener("click", () => { film.currentTime = 0; film.play(); });
}
Reveal.initialize({
  width: 1280, height: 720, margin: 0.03, center: false, hash: true, display: "flex",
  transition: "none", slideNumber: "c/t", plugins: [RevealNotes],
});
