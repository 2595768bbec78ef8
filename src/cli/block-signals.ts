// Replaces every function that sends a signal, before the plugin is imported. Node's permission
// model prevents a plugin's process from starting child processes and threads and from loading
// addons, but not from sending signals with kill(). The process runs as the gateway's user, so a
// plugin could otherwise end the gateway, reload it, or open its debugger.
import { ChildProcess } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

const SIGNAL_FUNCTIONS = ["kill", "_kill", "_debugProcess", "_debugEnd", "execve", "binding"];

export function blockSignalSending(): void {
  for (const name of SIGNAL_FUNCTIONS) replaceWithThrow(process, name);
  replaceWithThrow(ChildProcess.prototype, "kill");
  // A handle has a process ID even if it never started a process.
  const { _handle: handle } = new ChildProcess() as unknown as { _handle: object };
  replaceWithThrow(Object.getPrototypeOf(handle) as object, "kill");
  replaceWithThrow(Object.getPrototypeOf(handle) as object, "spawn");
  // Makes `import { kill } from "node:process"` return the replacement too.
  syncBuiltinESMExports();
}

function replaceWithThrow(of: object, name: string): void {
  if (!(name in of)) return;
  Object.defineProperty(of, name, {
    value() {
      throw new Error("A plugin in a child process cannot send signals.");
    },
    writable: false,
    configurable: false,
  });
}
