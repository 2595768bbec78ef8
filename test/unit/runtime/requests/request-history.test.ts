// The history of requests is saved each minute, and by a process that ends.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { LifetimeScope } from "../../../../src/lib/lifetime-scope.ts";
import { createRequestHistory } from "../../../../src/runtime/requests/request-history.ts";
import { installTestClock } from "../../../kit/clock.ts";
import { createRequestRecord } from "../../../kit/request-record.ts";
import { until } from "../../../kit/wait.ts";

const stateDir = mkdtempSync(join(tmpdir(), "tollgate-request-history-"));
afterAll(() => rmSync(stateDir, { recursive: true }));
const SAVE_MS = 60_000;

it("writes the counts each minute if they changed, and not while another process does", async () => {
  const time = installTestClock();
  const scope = new LifetimeScope();
  const history = await createRequestHistory({
    most: 10,
    stateDir,
    log: { error: expect.unreachable } as never,
    scope,
  });
  const { onRequests } = history.observer.observer;
  time.skip(SAVE_MS);
  expect(readdirSync(stateDir)).toEqual([]);
  void onRequests!([createRequestRecord()]);
  time.skip(SAVE_MS);
  await until(() => readdirSync(stateDir).includes("stats"));
  const first = readFileSync(join(stateDir, "stats"));
  await history.stopPersisting();
  void onRequests!([createRequestRecord({ id: "x2", model: "p/other" })]);
  await scope[Symbol.asyncDispose]();
  expect(readFileSync(join(stateDir, "stats"))).toEqual(first);
});
