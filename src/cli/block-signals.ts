// The permissions of Node deny a plugin's process processes, threads, and addons, and leave it kill(): with the gateway's user it could end the
// gateway, reload it, or open its debugger. So everything in the process that sends a signal is replaced before the plugin is imported.
import { ChildProcess } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

const SIGNAL_FUNCTIONS = ["kill", "_kill", "_debugProcess", "_debugEnd", "execve", "binding"];

export function blockSignalSending(): void {
  for (const name of SIGNAL_FUNCTIONS) replaceWithThrow(process, name);
  replaceWithThrow(ChildProcess.prototype, "kill");
  // A handle that has started nothing has an id all the same.
  const { _handle: handle } = new ChildProcess() as unknown as { _handle: object };
  replaceWithThrow(Object.getPrototypeOf(handle) as object, "kill");
  replaceWithThrow(Object.getPrototypeOf(handle) as object, "spawn");
  // `import { kill } from "node:process"` is another name of the same.
  syncBuiltinESMExports();
}

function replaceWithThrow(of: object, name: string): void {
  if (!(name in of)) return;
  Object.defineProperty(of, name, {
    value() {
      throw new Error("A plugin in a child process sends no signals.");
    },
    writable: false,
    configurable: false,
  });
}
