// The parts of a comparison that need no quiet machine: gateways of a folder, and the verdict about
// two checkouts.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { dearer } from "./aims.ts";
import { laneOf } from "./lanes.ts";
import { peersIn } from "./peers.ts";
import type { Sample } from "./rounds.ts";
import { AFTER, BEFORE } from "./steps.ts";

const GATEWAY = `
const { createServer } = require("node:http");
createServer((_, res) => res.end(process.argv[2])).listen(process.argv[1], "127.0.0.1");
`;

test("a folder of start scripts: each gateway with what it does, and no other file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-peers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), name.endsWith(".sh") ? 0o755 : 0o644);
  };
  const said = { headers: { authorization: "Bearer k" }, ready: "/up", checks: "keys" };
  const node = JSON.stringify(process.execPath);
  write(
    "small.sh",
    `#!/bin/sh\necho '${JSON.stringify(said)}'\nexec ${node} -e '${GATEWAY}' "$@"\n`,
  );
  write("absent.sh", "#!/bin/sh\nexit 0\n");
  write("notes.txt", "not a script");

  const targets = await peersIn(folder, 9);
  onTestFinished(async () => {
    for (const target of targets) await target.stop();
  });
  expect(targets).toMatchObject([
    {
      name: "small",
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer k" },
      chatOnly: true,
      checks: "keys",
      records: "not stated",
    },
  ]);
  const { port, path } = targets[0]!;
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  expect(await response.text()).toBe("http://127.0.0.1:9/v1");
});

test("a start script that fails is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-peers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "broken"), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
  await expect(peersIn(folder, 9)).rejects.toThrow(/broken exited with 3/);
});

test("a lane is dearer by its median round, above the given percentage", () => {
  const result = (lane: string, target: string, cpu: readonly number[]) => ({
    lane: laneOf(lane, { ms: 1, events: 1 }),
    target,
    samples: cpu.map((micros) => ({ cpu: micros }) as Sample),
  });
  const results = [
    result("json-1k", BEFORE, [100, 200, 100]),
    result("json-1k", AFTER, [106, 210, 112]),
    result("sse-full", BEFORE, [10, 10, 10]),
    result("sse-full", AFTER, [10.4, 20, 10.4]),
  ];
  expect(dearer(results, 5)).toEqual([{ lane: "json-1k", percent: expect.closeTo(6) }]);
  expect(dearer(results, 7)).toEqual([]);
});
