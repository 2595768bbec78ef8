import { expect, it } from "vitest";
import { coalesceRuns } from "../../../src/server/gateway-server.ts";

it("never runs twice at the same time, and a later caller gets a run that started after its call", async () => {
  let running = 0;
  let begun = 0;
  const ends: (() => void)[] = [];
  const run = coalesceRuns(async (why: string) => {
    expect(++running).toBe(1);
    const mine = ++begun;
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
    if (why === "bad") throw new Error("bad");
    return mine;
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = run("a");
  const [second, third] = [run("bad"), run("c")];
  await turn();
  expect(begun).toBe(1);
  ends.shift()!();
  expect(await first).toBe(1);
  await turn();
  const fourth = run("d");
  ends.shift()!();
  await expect(second).rejects.toThrow("bad");
  await expect(third).rejects.toThrow("bad");
  await turn();
  ends.shift()!();
  expect(await fourth).toBe(3);
  const fifth = run("e");
  ends.shift()!();
  expect(await fifth).toBe(4);
});
