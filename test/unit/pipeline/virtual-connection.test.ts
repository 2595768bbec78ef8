// The lines of a job and the requests of plugins have virtual connections. Nothing that refers to
// their requests may be in the old generation, because a full collection is rare: the lines of one
// batch would then use tens of megabytes.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createVirtualRequest } from "../../../src/pipeline/exchange/virtual-connection.ts";
import { createBufferedResponse } from "../../../src/pipeline/subrequest.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (of?: { readonly type: "minor" }) => void;

const REQUESTS = 300;
const NUMBERS_PER_REQUEST = 4_096;
const MAX_KEPT_BYTES = (REQUESTS * NUMBERS_PER_REQUEST * 8) / 4;

const oldBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => !name.startsWith("new_"))
    .reduce((sum, space) => sum + space.space_used_size, 0);

/** What a request refers to. */
const createState = () => Array.from({ length: NUMBERS_PER_REQUEST }, (_, n) => n + 0.5);

const CONNECTIONS = {
  request() {
    const state = createState();
    const body = Buffer.from("{}");
    const request = createVirtualRequest({ path: "/", headers: {}, body, socket: null! });
    return new Promise<unknown>((resolve) => {
      request.on("data", () => {});
      request.once("close", () => resolve(state.length));
    });
  },
  response() {
    const state = createState();
    const { response, body } = createBufferedResponse();
    response.on("close", () => state.length);
    response.end("{}");
    return body;
  },
  "canceled response"() {
    const state = createState();
    const { response, body } = createBufferedResponse();
    response.on("close", () => state.length);
    response.destroy();
    return body;
  },
};

/** Runs requests, and returns the number of bytes that they add to the old generation. */
async function countKeptBytes(run: () => Promise<unknown>): Promise<number> {
  collect();
  const before = oldBytes();
  for (let n = 0; n < REQUESTS; n++) {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
    if (n % 10 === 9) collect({ type: "minor" });
  }
  collect({ type: "minor" });
  return oldBytes() - before;
}

it.each(Object.entries(CONNECTIONS))("an ended %s is not kept", async (_, run) => {
  // While V8 marks objects for a full collection, it keeps all new ones.
  const kept: number[] = [];
  for (let n = 0; n < 3; n++) kept.push(await countKeptBytes(run));
  expect(Math.min(...kept)).toBeLessThan(MAX_KEPT_BYTES);
});
