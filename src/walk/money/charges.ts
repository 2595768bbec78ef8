// What one call takes of limits: those of its key, of its accounts, and of charge hooks. All are taken in one atomic step with the
// call's row.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Ask } from "../../money/estimate.ts";
import { priceHash } from "../../money/price.ts";
import type { Price } from "../../model/facts.ts";
import type { Limit } from "../../plugin/limit.ts";
import type { Reserve } from "../../plugin/store.ts";
import { refuseLimit } from "./limit-refusal.ts";
import type { HostCall } from "../call.ts";
import type { HostExchange } from "../exchange.ts";
import type { Stamped } from "./ledger.ts";
import { factsOf } from "../candidates/privacy.ts";

export interface Charges {
  readonly limits: readonly Limit[];
  readonly labels: Reserve["labels"];
  readonly mode: Ask["mode"] | undefined;
}

export function chargesOf(call: HostCall): Charges {
  const x = call.exchange;
  const limits = standing(x, call.n);
  const labels: Record<string, string | undefined> = { ...x["~"].labels, ...x.identity!.labels };
  let mode: Ask["mode"] | undefined;
  for (const hook of x["~"].frontend.chain.charge) {
    const charge = hook.applies(x.model, call.provider) ? hook.run(call) : undefined;
    if (!charge) continue;
    if (charge.limits) limits.push(...charge.limits);
    for (const name in charge.labels) labels[name] = charge.labels[name];
    if (charge.hold) mode = stricter(mode ?? "soft", charge.hold);
  }
  return { limits, labels, mode };
}

/** What its key and its accounts may use. A second attempt is the same request: it is not counted as one more. */
function standing({ identity, "~": { branch } }: HostExchange, n: number): Limit[] {
  const limits = [...(identity!.limits ?? []), ...(branch?.limits ?? [])];
  return n === 1 ? limits : limits.filter(({ unit }) => unit !== "requests");
}

/** For what generates nothing: it counts as one request, and takes no tokens and no money. */
const COUNTED: readonly Limit["unit"][] = ["requests", "concurrent"];

/** Reserves a row for what generates nothing. */
export function reserveAside(call: HostCall): Promise<void> {
  const { limits, labels } = chargesOf(call);
  const claims = limits
    .filter(({ unit }) => COUNTED.includes(unit))
    .map((limit) => ({ ...limit, take: 1n }));
  return reserveRow(call, { at: wallClock(), labels, claims, holdNano: 0n, price: undefined });
}

const ORDER = ["soft", "expected", "hard"] as const;
const stricter = (a: Ask["mode"], b: Ask["mode"]): Ask["mode"] =>
  ORDER.indexOf(b) > ORDER.indexOf(a) ? b : a;

export interface ReserveTerms {
  readonly at: number;
  readonly labels: Reserve["labels"];
  readonly claims: Reserve["claims"];
  readonly holdNano: bigint | null;
  readonly price: Price | undefined;
}

/** Resolves when the row is durable and everything is taken; `ask` says what would have fitted into a budget. */
export async function reserveRow(call: HostCall, of: ReserveTerms, ask?: Ask): Promise<void> {
  const x = call.exchange;
  const command: Stamped<Reserve> = {
    do: "reserve",
    at: of.at,
    attempt: call.attempt,
    request: x.id,
    n: call.n,
    key: x.identity!.id,
    target: {
      provider: call.provider,
      model: call.model,
      protocol: call.protocol,
      credential: call.credential,
    },
    privacy: x.privacy,
    labels: of.labels,
    account: x["~"].branch?.path,
    claims: of.claims,
    holdNano: of.holdNano,
    price: of.price ? priceHash(of.price) : null,
    asked: {
      model: x.model,
      frontend: x.frontend,
      protocol: x.protocol,
      lane: call.lane,
      stream: x.stream,
      ...(x.privacy !== "off" && { basis: factsOf(call.policy) }),
    },
  };
  x["~"].rowLabels = of.labels;
  const verdict = await x["~"].gen.ledger.reserve(command, of.price);
  if (!verdict.ok) {
    // A hedge that a limit refuses is not made, and its client need not know.
    if (!call.hedge) x["~"].limits = [verdict.denied];
    return refuseLimit(verdict, x["~"].branch, ask, of.claims);
  }
  x["~"].stay.pass();
  if (verdict.limits) x["~"].limits = verdict.limits;
}
