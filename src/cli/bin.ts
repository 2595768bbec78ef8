#!/usr/bin/env node
// The first thing that runs, on whatever Node there is: nothing newer than ten years may stand here, and nothing is
// imported before the version is known.
const REQUIRED_MAJOR = 24;
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < REQUIRED_MAJOR) {
  process.stderr.write(
    `Tollgate needs Node ${REQUIRED_MAJOR} or newer; this is ${process.version}.\n` +
      `Install it from https://nodejs.org, or run this command with Node ${REQUIRED_MAJOR} from npm:\n` +
      `  npx -y -p node@${REQUIRED_MAJOR} node ${process.argv.slice(1).join(" ")}\n`,
  );
  process.exitCode = 1;
} else {
  // In a process that was started without --disable-sigusr1, this signal would open a debugger.
  process.on("SIGUSR1", () => {});
  import("./support/v8-memory.ts")
    .then(({ restartWithMallocSettings, disablePretenuring }) => {
      restartWithMallocSettings(process.argv.slice(2));
      disablePretenuring();
    })
    .then(() => import("./support/compile-cache.ts"))
    .then(({ setUpCompileCache }) => setUpCompileCache())
    .then(() => import("./main.ts"))
    .then(({ main }) => main(process.argv.slice(2)))
    // Plugins may leave timers behind; a command is over when it says so.
    .then((code) => process.stdout.write("", () => process.exit(code)));
}
