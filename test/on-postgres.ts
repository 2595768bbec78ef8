// Tests of whole gateways once more, on a real PostgreSQL: `node test/on-postgres.ts [words of their paths]`. Ends with a line
// `N passed, N failed`.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { hasPostgres, startPostgres } from "./kit/postgres.ts";

/** What needs sqlite's own file, or says which store it means. */
const OTHERS = ["hanging-store", "package", "readme", "retention", "keeping", "third-party"];

if (!hasPostgres()) {
  console.log("0 passed, 0 failed");
  process.exit(0);
}
await using postgres = await startPostgres();
const root = join(import.meta.dirname, "..");
const words = process.argv.slice(2);
const child = spawn(
  join(root, "node_modules/.bin/vitest"),
  [
    "run",
    "--config=test/vitest.config.ts",
    ...OTHERS.map((name) => `--exclude=test/e2e/${name}*`),
    ...(words.length > 0 ? words : ["test/e2e"]),
  ],
  {
    cwd: root,
    env: {
      ...process.env,
      NO_COLOR: "1",
      TOLLGATE_TEST_STORE: "postgres",
      TOLLGATE_TEST_POSTGRES: postgres.url,
    },
    stdio: ["ignore", "pipe", "inherit"],
  },
);
let said = "";
child.stdout.setEncoding("utf8").on("data", (text: string) => {
  process.stdout.write(text);
  said += text;
});
const code = await new Promise<number>((resolve) =>
  child.once("close", (code) => resolve(code ?? 1)),
);
const line = said.split("\n").findLast((each) => /^\s*Tests\s/.test(each)) ?? "";
const count = (of: string) => Number(new RegExp(`(\\d+) ${of}`).exec(line)?.[1] ?? 0);
const failed = count("failed") || (code === 0 ? 0 : 1);
console.log(`${count("passed")} passed, ${failed} failed`);
process.exitCode = code;
