// The messages of one direction of a relayed socket: their order, and when the sender is paused.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageLane } from "../../../src/pipeline/sockets/message-lane.ts";

function createLane(waits: (message: string) => boolean) {
  const read: string[] = [];
  const pauses: boolean[] = [];
  const pending: (() => void)[] = [];
  const lane = new MessageLane({
    read(message) {
      read.push(message as string);
      return waits(message as string) ? new Promise((resolve) => pending.push(resolve)) : undefined;
    },
    setPaused: (isPaused) => void pauses.push(isPaused),
  });
  const release = async () => {
    while (pending.length > 0) {
      pending.shift()!();
      await new Promise((resolve) => void setImmediate(resolve));
    }
  };
  return { lane, read, pauses, pending, release };
}

describe("a message lane", () => {
  it("reads a message at once if nothing waits", () => {
    const { lane, read } = createLane(() => false);
    lane.push("a");
    lane.push("b");
    expect(read).toEqual(["a", "b"]);
    expect(lane.whenRead()).toBeUndefined();
  });

  it("pauses the sender while many messages wait, and resumes it once", async () => {
    const { lane, read, pauses, release } = createLane((message) => message === "0");
    for (let i = 0; i < 40; i++) lane.push(String(i));
    expect(read).toEqual(["0"]);
    expect(pauses).toEqual([true]);
    const over = lane.whenRead();
    await release();
    await over;
    expect(read).toHaveLength(40);
    expect(pauses).toEqual([true, false]);
  });

  it("pauses the sender of a large message while another one waits", async () => {
    const { lane, pauses, release } = createLane((message) => message === "0");
    lane.push("0");
    lane.push("x".repeat(1024 * 1024));
    expect(pauses).toEqual([true]);
    const over = lane.whenRead();
    await release();
    await over;
    expect(pauses).toEqual([true, false]);
  });

  it("reads all messages in their order, whichever of them wait", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (slow) => {
        const { lane, read, release } = createLane((message) => slow[Number(message)]!);
        slow.forEach((_, i) => lane.push(String(i)));
        await release();
        expect(read).toEqual(slow.map((_, i) => String(i)));
      }),
    );
  });
});
