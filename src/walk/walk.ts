// A request's whole life.
//
//     head → admit → receive → route → dispatch → present          settle wraps all, exactly once
import type { IncomingMessage, ServerResponse } from "node:http";
import { nextId } from "../lib/id.ts";
import { fail } from "../model/error.ts";
import type { AskedAnswer, AskedFor, AskedRequest } from "../plugin/asked.ts";
import { admit } from "./stations/admit.ts";
import { carry } from "./stations/carry.ts";
import { claim, free, release } from "./stations/claim.ts";
import { count } from "./stations/count.ts";
import { dispatch } from "./stations/dispatch.ts";
import { answered, connection, depthOf, inherit, MOST_DEEP, withoutAskers } from "./asked.ts";
import type { Asker } from "./asker.ts";
import { HostExchange } from "./exchange.ts";
import type { Generation } from "./generation.ts";
import type { MountedRoute } from "./mounted.ts";
import { edit } from "./stations/edit.ts";
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

export function walk(
  gen: Generation,
  mounted: MountedRoute,
  { req, res, params }: IncomingRequest,
): Promise<void> {
  const x = new HostExchange({ id: nextId(), gen, route: mounted, req, res, params, receive });
  return walked(x, mounted);
}

/** For a plugin, on behalf of the request that it is asked about. */
export async function ask(
  id: string,
  { path, body }: AskedRequest,
  { as, signal }: AskedFor,
): Promise<AskedAnswer> {
  const parent = as instanceof HostExchange ? as : fail("invalid", "`as` is no request.");
  if (depthOf(parent) >= MOST_DEEP)
    fail("internal", `Plugins ask for one another at most ${MOST_DEEP} deep.`, {
      code: "asked_too_deep",
    });
  if (body["stream"] === true) fail("invalid", "What a plugin asks is not streamed.");
  const { gen, asker: before } = parent["~"];
  const door = gen.door(path) ?? fail("not_found", `No frontend here answers at ${path}.`);
  const asker: Asker<HostExchange> = {
    parent,
    askers: [...new Set([...(before?.askers ?? []), id])],
  };
  const { req, res, answer } = connection(asker, path, body);
  const mounted = withoutAskers(door, asker.askers);
  const x = new HostExchange({
    id: nextId(),
    gen,
    route: mounted,
    req,
    res,
    params: {},
    receive,
    asker,
  });
  const given = AbortSignal.any([parent.signal, ...(signal ? [signal] : [])]);
  const giveUp = () => void res.destroy();
  given.addEventListener("abort", giveUp);
  if (given.aborted) giveUp();
  try {
    await walked(x, mounted);
    return await answered(x, answer);
  } finally {
    given.removeEventListener("abort", giveUp);
  }
}

async function walked(x: HostExchange, mounted: MountedRoute): Promise<void> {
  const leave = x["~"].gen.enter(x);
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
  const { stay, asker } = x["~"];
  // One that is made for another has that one's turn: waiting for one of its own, both could wait for ever.
  if (asker) inherit(x, asker);
  else stay.arrive();
  const admitting = asker ? undefined : admit(x);
  if (admitting) await admitting;
  const turn = asker ? undefined : stay.enter();
  if (turn) await turn;
  await x.read();
  const claiming = claim(x);
  if (claiming) await claiming;
  const editing = edit(x);
  if (editing) await editing;
  const rewriting = rewrite(x);
  if (rewriting) await rewriting;
  const findings = x["~"];
  const { gen, frontend, received, rewritten } = findings;
  const { survey, pinned } = received!;
  const inspecting = inspect(x);
  if (inspecting) await inspecting;
  const routing = route({ gen, frontend, x, work: x.work, survey, pinned, rewritten, findings });
  const plan = "candidates" in routing ? routing : await routing;
  if (x.op === "count") return count(x, plan);
  if (x.op === "relay") return carry(x, plan);
  return dispatch(x, plan, present);
}
