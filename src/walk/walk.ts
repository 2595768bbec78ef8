// A request's whole life.
//
//     head → admit → receive → route → dispatch → present          settle wraps all, exactly once
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Line } from "../plugin/call.ts";
import { admit } from "./admit.ts";
import type { Attempt } from "./call.ts";
import { carry } from "./carry.ts";
import { count } from "./count.ts";
import { dispatch } from "./dispatch.ts";
import { nextId, Visit } from "./exchange.ts";
import type { Generation, MountedRoute } from "./generation.ts";
import { present } from "./present.ts";
import { receive } from "./receive.ts";
import { refuse } from "./refuse.ts";
import { rewrite } from "./rewrite.ts";
import { route } from "./route.ts";
import { serve } from "./serve.ts";
import { settled } from "./settle.ts";

export interface Incoming {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly params: { readonly [name: string]: string };
}

export async function walk(
  gen: Generation,
  mounted: MountedRoute,
  incoming: Incoming,
  fetch: (call: Attempt) => Line["fetch"],
): Promise<void> {
  const leave = gen.enter();
  const x = new Visit({ id: nextId(), gen, route: mounted, ...incoming, receive });
  try {
    await settled(
      x,
      async () => {
        if ("serve" in mounted.route) return serve(x, mounted.route, admit);
        await admit(x);
        await x.read();
        await rewrite(x);
        const plan = await route(x);
        if (x.op === "count") return count(x, plan, fetch);
        if (x.op === "relay") return carry(x, plan, fetch);
        return dispatch(x, plan, present, fetch);
      },
      refuse,
    );
  } finally {
    leave();
  }
}
