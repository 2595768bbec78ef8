// Commands behind an interface, without roles, for tests of the interface.
import type {
  CommandHandlerMap,
  ControlDispatcher,
} from "../../src/admin/socket/control-socket.ts";
import { fail } from "../../src/model/error.ts";

export const createTestDispatcher = (commands: CommandHandlerMap): ControlDispatcher => ({
  async dispatch(name, input) {
    if (!Object.hasOwn(commands, name))
      return fail("not_found", `Unknown command "${name}".`, {
        code: "unknown_command",
      });
    return commands[name]!(input);
  },
});
