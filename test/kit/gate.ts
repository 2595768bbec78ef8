// Commands behind a door, without roles: for tests of the door.
import type { ControlCommandsOf, ControlGate } from "../../src/gateway/control/socket.ts";
import { fail } from "../../src/model/error.ts";

export const gateOf = (commands: ControlCommandsOf): ControlGate => ({
  async give(name, input) {
    if (!Object.hasOwn(commands, name))
      return fail("not_found", `This gateway does not know the command "${name}".`, {
        code: "unknown_command",
      });
    return commands[name]!(input);
  },
});
