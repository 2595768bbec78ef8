import { expect, it } from "vitest";
import { gathered } from "../../../src/lib/batches.ts";

it("one alone goes after a turn, in which others that are ready may join it", async () => {
  const order: string[] = [];
  const gathering = gathered(() => 1).then(() => order.push("goes"));
  setImmediate(() => order.push("the turn after"));
  process.nextTick(() => order.push("what was ready"));
  await gathering;
  expect(order).toEqual(["what was ready", "goes"]);
});

/** No time passes. */
const still = () => 0;

it("waits while each turn brings more, and goes with the first that brings nothing", async () => {
  let size = 1;
  let looks = 0;
  await gathered(() => {
    looks++;
    return size < 5 ? ++size : size;
  }, still);
  expect([size, looks]).toEqual([5, 5]);
});

it("however much each turn brings, a batch that is large goes", async () => {
  let size = 0;
  await gathered(() => (size += 40), still);
  expect(size).toBe(80);
});

it("however long turns bring a little, a batch goes in the end", async () => {
  let size = 0;
  let ms = 0;
  await gathered(
    () => ++size,
    () => (ms += 0.25),
  );
  expect(size).toBeLessThan(10);
});
