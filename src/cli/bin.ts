#!/usr/bin/env node
// The first thing that runs, on whatever Node there is: nothing newer than ten years may stand here, and nothing is
// imported before the version is known.
const needed = 24;
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < needed) {
  process.stderr.write(
    `Tollgate needs Node ${needed} or newer; this is ${process.version}.\n` +
      `Install it from https://nodejs.org, or run this command with Node ${needed} from npm:\n` +
      `  npx -y -p node@${needed} node ${process.argv.slice(1).join(" ")}\n`,
  );
  process.exitCode = 1;
} else {
  // In a process that was started without --disable-sigusr1, this signal would open a debugger.
  process.on("SIGUSR1", () => {});
  import("./memory.ts")
    .then(({ giveBack, startYoung }) => {
      giveBack(process.argv.slice(2));
      startYoung();
    })
    .then(() => import("./kept.ts"))
    .then(({ keepCompiled }) => keepCompiled())
    .then(() => import("./main.ts"))
    .then(({ main }) => main(process.argv.slice(2)))
    // Plugins may leave timers behind; a command is over when it says so.
    .then((code) => process.stdout.write("", () => process.exit(code)));
}
