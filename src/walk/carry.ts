import { fail } from "../model/error.ts";
import type { Line } from "../plugin/call.ts";
import { Attempt } from "./call.ts";
import { encode, headOf } from "./encode.ts";
import type { Visit } from "./exchange.ts";
import { fly } from "./fly.ts";
import type { Plan } from "./route.ts";
import { error } from "./send.ts";

/** A by-id operation of a protocol, to the one who holds the id: the client's method, upstream's words. Verbatim or nothing. */
export async function carry(
  x: Visit,
  plan: Plan,
  fetch: (call: Attempt) => Line["fetch"],
): Promise<void> {
  const seat = plan.seats.find((s) => s.lane === "verbatim" && s["~"].provider.state === "relay");
  if (!seat) return fail("not_found", "There is nothing here by that id.", { code: "not_found" });
  const call = new Attempt(x, seat, 1, fetch);
  const { endpoint } = seat["~"];
  const inner = x["~"];
  inner.lane = "verbatim";
  const flight = await fly(
    call,
    endpoint.wire!,
    encode(call, endpoint.protocol!, endpoint.wire!.endpoint),
  );
  const head = Object.entries(headOf(call, flight.headers)).filter(
    ([, value]) => value !== undefined,
  );
  inner.res.writeHead(flight.status, {
    "content-type": String(flight.headers["content-type"] ?? "application/json"),
    ...Object.fromEntries(head),
    ...Object.fromEntries(inner.headers ?? []),
  });
  await new Promise<void>((resolve, reject) => {
    inner.onGone.push(() => flight.abort(error("canceled", "The client went away.")));
    flight.take({
      data(chunk) {
        inner.bytesOut += chunk.length;
        if (inner.res.write(chunk)) return;
        flight.pause();
        inner.res.once("drain", () => flight.resume());
      },
      end(problem) {
        if (problem !== undefined) return reject(problem);
        inner.res.end();
        resolve();
      },
    });
  });
}
