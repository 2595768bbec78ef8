// A request's whole life.
//
//     head → admit → receive → route → dispatch → present          settle wraps all, exactly once
import type { IncomingMessage, ServerResponse } from "node:http";
import { nextId } from "../lib/id.ts";
import { admit } from "./stations/admit.ts";
import { carry } from "./stations/carry.ts";
import { claim, free, release } from "./stations/claim.ts";
import { count } from "./stations/count.ts";
import { dispatch } from "./stations/dispatch.ts";
import { HostExchange } from "./exchange.ts";
import type { Generation } from "./generation.ts";
import type { MountedRoute } from "./mounted.ts";
import { inspect } from "./stations/inspect.ts";
import { present } from "./stations/present.ts";
import { receive } from "./stations/receive.ts";
import { refuse } from "./stations/refuse.ts";
import { rewrite } from "./stations/rewrite.ts";
import { route } from "./stations/route.ts";
import { serve } from "./stations/serve.ts";
import { refused, settle } from "./stations/settle.ts";

export interface IncomingRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly params: { readonly [name: string]: string };
}

export async function walk(
  gen: Generation,
  mounted: MountedRoute,
  incoming: IncomingRequest,
): Promise<void> {
  const x = new HostExchange({ id: nextId(), gen, route: mounted, ...incoming, receive });
  const leave = gen.enter(x);
  try {
    try {
      await pass(x, mounted);
    } catch (problem) {
      const freeing = free(x);
      if (freeing) await freeing;
      refused(x, problem, refuse);
    }
    const settling = settle(x);
    if (settling) await settling;
  } finally {
    release(x);
    x["~"].stay.walked();
    leave();
  }
}

/** Where nothing has to be waited for, nothing is: each wait is a turn of the queue and a promise. */
async function pass(x: HostExchange, { route: of }: MountedRoute): Promise<void> {
  if ("serve" in of) return serve(x, of, admit);
  const { stay } = x["~"];
  stay.arrive();
  const admitting = admit(x);
  if (admitting) await admitting;
  const turn = stay.enter();
  if (turn) await turn;
  await x.read();
  const claiming = claim(x);
  if (claiming) await claiming;
  const rewriting = rewrite(x);
  if (rewriting) await rewriting;
  const findings = x["~"];
  const { gen, frontend, received } = findings;
  const { survey, pinned } = received!;
  const inspecting = inspect(x);
  if (inspecting) await inspecting;
  const routing = route({ gen, frontend, x, work: x.work, survey, pinned, findings });
  const plan = "candidates" in routing ? routing : await routing;
  if (x.op === "count") return count(x, plan);
  if (x.op === "relay") return carry(x, plan);
  return dispatch(x, plan, present);
}
