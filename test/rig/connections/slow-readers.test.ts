import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { readers } from "./slow-readers.ts";
import { STREAM_PROTOCOLS } from "./endless-upstream.ts";

const SHORT = { readers: 40, bytes: 16 * 1024 * 1024, seed: 7 };
const CHAT = { from: "chat", to: "chat" } as const;

// They mostly wait, so they run in parallel.
const WAYS = STREAM_PROTOCOLS.flatMap((from, i) => [
  { from, to: from },
  { from, to: STREAM_PROTOCOLS[(i + 1) % STREAM_PROTOCOLS.length]! },
]);
it.concurrent.for(WAYS)(
  "clients of $from that stop reading a response of $to use little memory, are disconnected in the end, and have their rows",
  async (way) => {
    const { wrong } = await readers({ ...SHORT, ...way });
    expect(wrong).toEqual([]);
  },
);

it.concurrent("a proxy without backpressure is detected", async () => {
  await expectCaught(/memory grew/, (seed) => readers({ ...SHORT, ...CHAT, seed, heedless: true }));
});
