import { expect, it } from "vitest";
import { ClientSocket } from "../../../../src/runtime/sockets/client-socket.ts";

it("cuts the reason of a close frame at 123 bytes, between two characters", () => {
  const reasons: Uint8Array[] = [];
  const ws = { close: (_code: number, reason: Uint8Array) => reasons.push(reason), resume() {} };
  const texts = ["", "short", "x".repeat(200), "é".repeat(100), "🌍".repeat(50)];
  for (const text of texts)
    new ClientSocket(ws as never, {} as never, {} as never, "key").close(1008, text);
  for (const [i, reason] of reasons.entries()) {
    expect(reason.length).toBeLessThanOrEqual(123);
    const read = new TextDecoder("utf-8", { fatal: true }).decode(reason);
    expect(texts[i]!.startsWith(read)).toBe(true);
    expect(reason.length).toBeGreaterThanOrEqual(Math.min(Buffer.byteLength(texts[i]!), 120));
  }
});
