// `npm run dev`: the gateway from source under Node's watch mode, which restarts it when a file
// changes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../../..");

it("serves from source under Node's watch mode, and ends on request", async () => {
  const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const [program, ...args] = (scripts.dev as string).split(" ");
  expect(program).toBe("node");
  expect(args).toContain("--watch");
  const folder = await mkdtemp(join(tmpdir(), "tollgate-dev-"));
  const child = spawn(
    join(ROOT, "node_modules/.bin/node"),
    [...args.map((arg) => (arg.startsWith("src/") ? join(ROOT, arg) : arg)), "--port", "0"],
    { cwd: folder, stdio: ["ignore", "pipe", "pipe"] },
  );
  try {
    let said = "";
    const listening = new Promise<string>((resolve, reject) => {
      child.stdout.on("data", (part: Buffer) => {
        said += part.toString();
        const [, url] = /"url":"(http:[^"]+)"/.exec(said) ?? [];
        if (url && said.includes('"listening"')) resolve(url);
      });
      child.on("exit", () => reject(new Error(said)));
    });
    expect((await fetch(`${await listening}/healthz`)).status).toBe(200);
  } finally {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
});
