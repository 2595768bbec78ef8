import { expect, it } from "vitest";
import { readers } from "./readers.ts";

const SHORT = { readers: 40, bytes: 16 * 1024 * 1024, seed: 7 };

it("clients that stop reading cost next to nothing, are cut off in the end, and have their rows", async () => {
  const { wrong } = await readers(SHORT);
  expect(wrong).toEqual([]);
});

it("a proxy that heeds no reader is caught", async () => {
  const { wrong } = await readers({ ...SHORT, heedless: true });
  expect(wrong.join()).toContain("memory grew");
});
