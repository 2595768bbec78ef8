// What leaves is what was looked at: state, models, accounts and privacy are judged on the body that leaves, on both lanes, just
// before it does. The tables are in protocols/look; here stands what may be done with what they find.
import { wallClock } from "../../lib/wall-clock.ts";
import { satisfies } from "../../catalogue/policy.ts";
import { fail } from "../../model/error.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type { Named } from "../../plugin/look.ts";
import { featuresOf, keptIn, modelsOf, refuse } from "../../protocols/look/index.ts";
import type { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { OutgoingRequest } from "./outgoing-request.ts";
import { matches } from "../candidates/pattern.ts";
import { policyOf } from "../candidates/policy.ts";
import { keptPromise, reviewed } from "../candidates/privacy.ts";

/** Before a request is written for a provider: the answer must not depend on what cannot be said there. */
export function mayBegin(call: HostCall): void {
  const x = call.exchange;
  const { survey } = x["~"].received!;
  const native = call.protocol === null;
  const { named = [] } = survey;
  if (call.lane === "translated" && named.length > 0) {
    relayed(call, named);
    if (call.protocol !== x.protocol) served(named);
  }
  // Only the plugin sees what leaves there: so what it is given must be what may leave.
  if (native && x.privacy !== "off") reviewed(call, x.body, x["~"].frontend.protocol);
}

/** Some tools have a field of their own, such as `mcp_servers`. They are refused as tools are, and by that field's name. */
function served(named: Named): void {
  for (const { kind, path } of named)
    if (kind === "hosted" && (path === "mcp_servers" || path === "mcpServers"))
      fail("unsupported", `${path} run at their own provider, or are known to it alone.`, {
        param: path,
        code: "unsupported_tool",
      });
}

/** The last look at a request: nothing changes it after this. */
export function mayLeave(call: HostCall, out: OutgoingRequest): void {
  const named = out.named();
  if (named.length > 0) {
    for (const one of named)
      if (one.kind === "account")
        fail(
          "unsupported",
          `${one.path} names an account, which is the gateway's own. Leave it out.`,
          {
            param: one.path,
            code: "unsupported_parameter",
          },
        );
    relayed(call, named);
    permitted(call, named);
  }
  keptPromise(call, out);
}

/** A client that speaks another protocol than the provider cannot mean state of that provider. */
function relayed(call: HostCall, named: Named): void {
  const x = call.exchange;
  const own = call.protocol === x.protocol;
  const bound = x["~"].received!.pinned !== undefined;
  const kept = keptIn(named, { state: own ? call.state : "refuse", bound });
  if (kept) refuse(kept);
}

/** A body may name more models than its own. The key must be allowed each of them, and privacy holds for each. */
function permitted(call: HostCall, named: Named): void {
  const x = call.exchange;
  for (const info of othersIn(call, named)) {
    const id = `${call.provider}/${info.model}`;
    // A preset that is part of the model's own name was allowed with it.
    if (!call.model.endsWith(info.model) && !may(x, id, info.model))
      fail(
        "forbidden",
        `This key may not use ${id}, which this request names beside its own model.`,
        {
          param: named.find((one) => one.kind === "model" && one.model === info.model)!.path,
          code: "model_not_allowed",
        },
      );
    if (x.privacy === "off") continue;
    if (
      !satisfies(
        x.privacy,
        policyOf(call.candidate["~"], info, wallClock(), [...featuresOf(named)]),
      )
    )
      fail(
        "privacy",
        `${id}, which this request names, does not satisfy Service-ZDR: ${x.privacy}.`,
        {
          param: "Service-ZDR",
          code: "zdr_unavailable",
        },
      );
  }
}

/** The models that a body names beside its own, as this provider has them: any of them may answer, and be paid. */
export const othersIn = (call: HostCall, named: Named): readonly ModelInfo[] =>
  modelsOf(named).map((model) => call.exchange["~"].gen.catalogue.find(call.provider, model).info);

/** By its id here, or by a name of the gateway's that leads to it. */
function may(x: HostExchange, id: string, name: string): boolean {
  const allowed = x.identity?.models;
  if (!allowed) return true;
  const fits = (one: string) => allowed.some((pattern) => matches(pattern, one));
  return fits(id) || (fits(name) && leadsTo(x, name, id));
}

function leadsTo(x: HostExchange, name: string, id: string): boolean {
  const { gen, frontend } = x["~"];
  try {
    return gen.resolver
      .resolve(frontend, name, x.stream)
      .candidates.some((candidate) => candidate.id === id);
  } catch {
    return false;
  }
}
