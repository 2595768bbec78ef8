// Bytes in pieces of any size: they are whole and in order, and small pieces need no object each.
import fc from "fast-check";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { BytePieces } from "../../../../src/lib/net/byte-pieces.ts";
import { createEventSplitter, createLineDecoder } from "../../../../src/protocols/sse/index.ts";
import { StreamedRequests } from "../../../../src/runtime/plugin-host/streamed-fetch.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("returns the bytes whole and in order, once", () => {
  const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(2_000)), { maxLength: 60 });
  fc.assert(
    fc.property(sizes, fc.nat(600), sizes, (before, small, after) => {
      const pieces = new BytePieces();
      for (const lengths of [[...before, ...Array<number>(small).fill(1), ...after], after]) {
        const sent = lengths.map((length, i) => Buffer.alloc(length, i));
        for (const piece of sent) pieces.add(piece);
        const whole = Buffer.concat(sent);
        expect(pieces.size).toBe(whole.length);
        expect(pieces.take().equals(whole)).toBe(true);
      }
      expect(pieces.size).toBe(0);
      expect(pieces.take()).toHaveLength(0);
    }),
    { numRuns: 50 },
  );
});

const PIECES = 5_000;

interface Receiver {
  onResponseStart(controller: object, status: number, headers: object): void;
  onResponseData(controller: object, piece: Buffer): void;
  onResponseEnd(): void;
}

/** Sends a request whose response the test creates. */
async function startResponse() {
  let receiver: Receiver | undefined;
  const dispatcher = { dispatch: (_: object, handler: Receiver) => (receiver = handler) } as never;
  const requests = new StreamedRequests(new AbortController().signal);
  const reach = { reach: undefined, dispatcher, allowedOrigins: new Set<string>() };
  const sent = requests.send(new URL("http://tools.example/"), { idleMs: 1_000 }, reach);
  receiver!.onResponseStart({}, 200, {});
  return { answer: await sent, receiver: receiver! };
}

/** Passes on pieces of one byte. Returns how many of them are still in memory. */
async function countKept(push: (piece: Buffer) => void): Promise<number> {
  const pieces: WeakRef<ArrayBufferLike>[] = [];
  for (let n = 0; n < PIECES; n++) {
    const piece = Buffer.allocUnsafeSlow(1).fill("x");
    // Every view keeps this object in memory.
    pieces.push(new WeakRef(piece.buffer));
    push(piece);
  }
  // References are weak only after the code that created them has returned.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  return pieces.filter((piece) => piece.deref() !== undefined).length;
}

it("a sender of single bytes makes the gateway keep no object for each", async () => {
  const lengths: number[] = [];
  const splitter = createEventSplitter((_, from, to) => lengths.push(to - from));
  expect(await countKept(splitter.push)).toBeLessThan(PIECES / 10);
  splitter.push(Buffer.from("\n\n"));

  const lines = createLineDecoder((line) => lengths.push(line.length));
  expect(await countKept((piece) => lines.push(piece))).toBeLessThan(PIECES / 10);
  lines.end();
  expect(lengths).toEqual([PIECES + 2, PIECES]);

  for (const isEarly of [false, true]) {
    const { answer, receiver } = await startResponse();
    let body = isEarly ? undefined : answer.bytes(PIECES);
    const kept = await countKept((piece) => receiver.onResponseData({}, piece));
    expect(kept).toBeLessThan(PIECES / 10);
    receiver.onResponseEnd();
    body ??= answer.bytes(PIECES);
    expect(await body).toHaveLength(PIECES);
  }
});
