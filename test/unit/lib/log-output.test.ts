// A log output that cannot be written, as of a lost terminal or a full disk, never fails the
// logging code.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { expect, it } from "vitest";

const LOG = new URL("../../../src/lib/log/log.ts", import.meta.url).href;

/** Logs much more than may be queued, and finally reports its memory. */
const program = (pretty: boolean): string => `
import { createLog } from ${JSON.stringify(LOG)};
const log = createLog({ level: "info", pretty: ${pretty} });
let failed = 0;
for (let i = 0; i < 20_000; i++)
  try { log.info({ i, text: "x".repeat(1_000) }, "line"); } catch { failed++; }
log.flush();
for (let n = 0; n < 50; n++) await new Promise(setImmediate);
process.stderr.write(JSON.stringify({ failed, external: process.memoryUsage().rss }));
`;

it.each([
  ["a terminal", true],
  ["a pipe", false],
])("%s", async (_, pretty) => {
  // Each write to it fails with ENOSPC.
  await using full = await open("/dev/full", "w");
  const child = spawn(
    process.execPath,
    ["--conditions=tollgate-source", "--input-type=module", "-e", program(pretty)],
    { stdio: ["ignore", full.fd, "pipe"] },
  );
  let said = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number | null];
  expect([code, said.slice(0, 2_000)]).toEqual([0, expect.stringContaining('"failed":0')]);
  // 20 MB were logged: lines that cannot be written are dropped, not kept.
  expect(JSON.parse(said).external).toBeLessThan(300e6);
});
