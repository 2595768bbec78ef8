import type { HedgeDelays } from "../../model/hedge.ts";
import { chatWork } from "../../model/chat-work.ts";
import { faultOf } from "../../model/error.ts";
import type { Privacy } from "../../model/facts.ts";
import type { PickName } from "../../model/pick.ts";
import type { Work } from "../../model/work.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { Generation } from "../generation.ts";
import type { MountedFrontend, HostCandidate } from "../mounted.ts";
import type { PickInputs } from "../choosing/pick.ts";
import { mayAsk, stricter } from "../accounts.ts";
import { nextId } from "../../lib/id.ts";
import { route } from "../stations/route.ts";

export interface RouteExplanation {
  readonly pick: PickName;
  readonly hedge?: HedgeDelays | undefined;
  readonly candidates: readonly {
    candidate: HostCandidate;
    closedBy: string | undefined;
    /** Why it stands where it does. */
    place: string | undefined;
  }[];
  readonly excluded: readonly {
    candidate: HostCandidate;
    by: string;
    code: string;
    message: string;
  }[];
  readonly notes: readonly string[];
}

/** Whose request it would be, and how private. */
export interface SupposedClient {
  readonly identity?: Identity | undefined;
  readonly privacy?: Privacy | undefined;
}

/** What a plain request for a model would meet: the route station itself, on a request that no client sent. */
export async function explain(
  gen: Generation,
  frontend: MountedFrontend,
  model: string,
  reckoned: PickInputs["reckoned"],
  client: SupposedClient = {},
): Promise<RouteExplanation> {
  const resolution = gen.resolver.resolve(frontend, model, false);
  const work = frontend.protocol?.work ?? chatWork;
  try {
    const x = plainExchange(frontend, model, work, narrowed(gen, frontend, client));
    const { output, images } = work.examples[0].usage;
    const survey = { features: [], named: [], maxOutput: output, n: images };
    // The likeliest order: no luck for any of them.
    const supposed = { chance: () => 0.5, reckoned };
    const plan = await route({
      gen,
      frontend,
      x,
      work,
      survey,
      supposed,
      pinned: undefined,
      findings: { resolution: undefined, out: [], rested: undefined },
    });
    const { pick, choice } = plan.resolution;
    const inputs = { x, frontend, survey, work, usual: gen.usual, ...supposed };
    const place = (candidate: HostCandidate) => choice?.why(candidate, plan.candidates, inputs);
    return {
      pick,
      hedge: plan.resolution.hedge,
      candidates: plan.candidates.map((candidate) => ({
        candidate,
        closedBy: plan.resolution.closed.get(candidate),
        place: place(candidate),
      })),
      excluded: plan.out.map(({ candidate, by, code, message }) => ({
        candidate: candidate as HostCandidate,
        by,
        code,
        message,
      })),
      notes: plan.resolution.notes,
    };
  } catch (problem) {
    const fault = faultOf(problem);
    if (!fault) throw problem;
    return {
      pick: resolution.pick,
      candidates: [],
      excluded: resolution.candidates.map((candidate) => ({
        candidate,
        by: "route",
        code: fault.code ?? fault.kind,
        message: fault.message,
      })),
      notes: resolution.notes,
    };
  }
}

/** As the host would have it admitted; fails as that would. */
function narrowed(
  { accounts }: Generation,
  frontend: MountedFrontend,
  { identity: said, privacy = "off" }: SupposedClient,
): Required<SupposedClient> {
  if (!said) return { identity: { id: "explain" }, privacy };
  const identity =
    said.account === undefined ? said : accounts.identity(said, accounts.branch(said.account));
  mayAsk(identity, frontend.name);
  return { identity, privacy: stricter(privacy, identity.privacy ?? "off") };
}

/** The smallest request for a model, as hooks see it. A hook may tighten its privacy; nothing else that a hook does to it counts. */
function plainExchange(
  frontend: MountedFrontend,
  model: string,
  { kind, examples }: Work,
  client: Required<SupposedClient>,
): Exchange {
  const { routes } = frontend.frontend;
  const route = routes.find((one) => "op" in one && one.op === "generate");
  const body = { model };
  let privacy: Privacy = client.privacy ?? "off";
  const x: Exchange = {
    id: nextId(),
    frontend: frontend.name,
    method: "POST",
    path: [route?.path ?? "/"].flat()[0]!,
    address: "",
    params: {},
    headers: {},
    query: new URLSearchParams(),
    signal: new AbortController().signal,
    certificate: undefined,
    presents: [],
    limits: [],
    identity: client.identity,
    get privacy() {
      return privacy;
    },
    identify() {},
    tighten(to) {
      privacy = stricter(privacy, to);
    },
    occupy() {},
    header() {},
    label() {},
    size: { bytes: 0, input: examples[0].usage.input ?? 0 },
    read: () => Promise.resolve(x),
    protocol: frontend.protocol?.id ?? "",
    kind,
    op: "generate",
    name: "generate",
    model,
    stream: false,
    features: [],
    body,
    get request() {
      return frontend.server!.request(body, "generate");
    },
  };
  return x;
}
