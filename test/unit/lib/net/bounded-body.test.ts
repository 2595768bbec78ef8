// Bodies of other parties are read up to a size.
import fc from "fast-check";
import { expect, it } from "vitest";
import { readBoundedBody } from "../../../../src/lib/net/bounded-body.ts";

it("returns the bytes of a body that is not too large, and receives no more of any other one", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 9 }),
      fc.nat(60),
      async (parts, maxBytes) => {
        let taken = 0;
        let isCanceled = false;
        const body = new ReadableStream<Uint8Array>(
          {
            pull(controller) {
              const part = parts[taken++];
              if (part) controller.enqueue(part);
              else controller.close();
            },
            cancel: () => void (isCanceled = true),
          },
          { highWaterMark: 0 },
        );
        const whole = Buffer.concat(parts);
        const read = await readBoundedBody(body, maxBytes);
        if (whole.length <= maxBytes) {
          expect(read).toEqual(whole);
          return;
        }
        expect([read, isCanceled]).toEqual([undefined, true]);
        // Only the part that exceeded the size was received in addition.
        const before = parts.slice(0, taken - 1).reduce((sum, part) => sum + part.length, 0);
        expect(before).toBeLessThanOrEqual(maxBytes);
      },
    ),
  );
  expect(await readBoundedBody(null, 1)).toEqual(Buffer.alloc(0));
});
