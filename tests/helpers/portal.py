"""A settings portal on a D-Bus of the test's own."""

import threading

APPEARANCE = "org.freedesktop.appearance", "reduced-motion"
Known = dict[tuple[str, str], tuple[str, object]]


class Portal(threading.Thread):
    """Answers as a portal for settings does."""

    def __init__(
        self,
        address: str,
        known: Known,
        methods: tuple[str, ...] = ("ReadOne", "Read"),
        mute: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self.address, self.known, self.methods, self.mute = address, known, methods, mute
        self.ready = threading.Event()
        self.asked: list[tuple[str, tuple[str, str]]] = []

    def begin(self) -> None:
        """Return when it can be asked."""
        self.start()
        assert self.ready.wait(10)

    def run(self) -> None:
        from jeepney import MessageType, new_error, new_method_return
        from jeepney.bus_messages import message_bus
        from jeepney.io.blocking import open_dbus_connection

        with open_dbus_connection(bus=self.address) as bus:
            bus.send_and_get_reply(message_bus.RequestName("org.freedesktop.portal.Desktop"))
            self.ready.set()
            while True:
                try:
                    message = bus.receive()
                except OSError:  # the bus has ended
                    return
                if message.header.message_type is not MessageType.method_call or self.mute:
                    continue
                name, key = message.header.fields[3], message.body
                self.asked.append((name, key))
                if name not in self.methods:
                    bus.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))
                elif key not in self.known:
                    bus.send(new_error(message, "org.freedesktop.portal.Error.NotFound"))
                else:
                    value = self.known[key]
                    found = value if name == "ReadOne" else ("v", value)
                    bus.send(new_method_return(message, "v", (found,)))
