import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { faultOf } from "../../model/error.ts";
import type { Generation } from "../generation.ts";
import type { MountedFrontend, HostCandidate } from "../mounted.ts";
import { nextId, HostExchange } from "../exchange.ts";
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

/** What a plain request for a model would meet: the route station itself, on a request that nobody sent. */
export async function explain(
  gen: Generation,
  frontend: MountedFrontend,
  model: string,
): Promise<RouteExplanation> {
  const resolution = gen.resolver.resolve(frontend, model, false);
  const req = new IncomingMessage(new Socket());
  req.method = "POST";
  const asked = frontend.frontend.routes.find((r) => "op" in r && r.op === "generate");
  const x = new HostExchange({
    id: nextId(),
    gen,
    route: { frontend, route: asked ?? { method: "POST", path: "/", op: "generate" } },
    req,
    res: new ServerResponse(req),
    params: {},
    receive: () => Promise.resolve(),
  });
  x.identify({ id: "explain" });
  x["~"].received = {
    raw: Buffer.alloc(0),
    bytes: 0,
    spans: null,
    body: { model },
    survey: { features: [], named: [] },
    model,
    pinned: undefined,
    stream: false,
    op: "generate",
    name: "generate",
    sent: { model },
    edits: undefined,
    record: undefined,
  };
  try {
    const plan = await route(x);
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
