import { chatWork } from "../../model/chat-work.ts";
import { faultOf } from "../../model/error.ts";
import type { Privacy } from "../../model/facts.ts";
import type { Kind } from "../../model/request.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { Generation } from "../generation.ts";
import type { MountedFrontend, HostCandidate } from "../mounted.ts";
import { stricter } from "../accounts.ts";
import { nextId } from "../../lib/id.ts";
import { route } from "../stations/route.ts";

export interface RouteExplanation {
  readonly candidates: readonly { candidate: HostCandidate; closedBy: string | undefined }[];
  readonly excluded: readonly {
    candidate: HostCandidate;
    by: string;
    code: string;
    message: string;
  }[];
  readonly notes: readonly string[];
}

/** What a plain request for a model would meet: the route station itself, on a request that no client sent. */
export async function explain(
  gen: Generation,
  frontend: MountedFrontend,
  model: string,
): Promise<RouteExplanation> {
  const resolution = gen.resolver.resolve(frontend, model, false);
  const work = frontend.protocol?.work ?? chatWork;
  try {
    const plan = await route({
      gen,
      frontend,
      x: plainExchange(frontend, model, work.kind),
      work,
      survey: { features: [], named: [] },
      pinned: undefined,
      findings: { resolution: undefined, out: [], rested: undefined },
    });
    return {
      candidates: plan.candidates.map((candidate) => ({
        candidate,
        closedBy: plan.resolution.closed.get(candidate),
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

/** The smallest request for a model, as hooks see it. A hook may tighten its privacy; nothing else that a hook does to it counts. */
function plainExchange(frontend: MountedFrontend, model: string, kind: Kind): Exchange {
  const { routes } = frontend.frontend;
  const route = routes.find((one) => "op" in one && one.op === "generate");
  const body = { model };
  let privacy: Privacy = "off";
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
    identity: { id: "explain" },
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
    size: { bytes: 0, input: 0 },
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
