#!/usr/bin/env node
// Checks the version of Node.js, and then starts the command line. This file must run on any
// version. It therefore uses only syntax that is 10 years old, and imports nothing before the
// check.
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
  import("./support/process-setup.ts")
    .then(({ applyMallocSettings }) => applyMallocSettings(process.argv.slice(2)))
    .then(() => import("./support/compile-cache.ts"))
    .then(({ setUpCompileCache }) => setUpCompileCache())
    .then(() => import("./main.ts"))
    .then(({ main }) => main(process.argv.slice(2)))
    // Plugins may leave timers running, so the process exits explicitly when the command has ended.
    .then((code) => process.stdout.write("", () => process.exit(code)));
}
