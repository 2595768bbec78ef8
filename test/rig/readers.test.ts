import { expect, it } from "vitest";
import { caught } from "./caught.ts";
import { readers } from "./readers.ts";

const SHORT = { readers: 40, bytes: 16 * 1024 * 1024, seed: 7 };

// Both mostly wait: side by side.
it.concurrent("clients that stop reading cost next to nothing, are cut off in the end, and have their rows", async () => {
  const { wrong } = await readers(SHORT);
  expect(wrong).toEqual([]);
});

it.concurrent("a proxy that heeds no reader is caught", async () => {
  await caught(/memory grew/, (seed) => readers({ ...SHORT, seed, heedless: true }));
});
