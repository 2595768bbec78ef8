import { hold, outputThatFits, type Ask } from "../money/estimate.ts";
import { formatUsd } from "../money/format.ts";
import { priceHash } from "../money/price.ts";
import { fail, faultOf } from "../model/error.ts";
import type { Limit, LimitState, Reserve } from "../plugin/store.ts";
import { blame } from "./blame.ts";
import type { Attempt } from "./call.ts";
import { leaving } from "./leaving.ts";
import { factsOf } from "./privacy.ts";
import type { Departure } from "./outgoing.ts";
import type { Stamped } from "./generation.ts";
import { error } from "./send.ts";
import type { Tally } from "./tally.ts";
import { termsOf } from "./terms.ts";

/** Barrier B1: every limit, every budget and the reserve row are one atomic store call, durable before a byte leaves. */
export async function reserve(call: Attempt, out: Departure | null, tally: Tally): Promise<void> {
  const x = call.exchange;
  const { gen, frontend } = x["~"];
  const limits: Limit[] = [];
  const labels: Record<string, string | undefined> = { ...x.identity!.labels };
  let mode: Ask["mode"] | undefined;
  for (const hook of frontend.chain.charge) {
    const charge = hook.applies(x.model, call.provider) ? hook.run(call) : undefined;
    if (!charge) continue;
    if (charge.limits) limits.push(...charge.limits);
    for (const name in charge.labels) labels[name] = charge.labels[name];
    if (charge.hold) mode = stricter(mode ?? "soft", charge.hold);
  }
  const budgeted = limits.some((l) => l.unit === "nano_usd");
  const shelf = gen.catalogue.shelf(call.provider);
  const { survey, input, inputMost, runs, others, unpriced } = leaving(call, out, {
    shelf,
    capped: mode === "hard",
  });
  tally.inputEstimate = input;
  tally.pricing.terms = termsOf(call, survey);
  const at = (tally.pricing.at = Date.now());
  const ask: Ask = {
    ...tally.pricing.terms,
    mode: mode ?? "expected",
    price: call.info.price ?? null,
    input,
    inputMost,
    runs,
    others,
    output: survey.maxOutput,
    limit: call.info.limits?.output,
    usual: gen.usual.p95(tally.who),
    n: survey.n,
    media: survey.media !== undefined || survey.features.includes("audio"),
    kind: x.kind,
    at,
  };
  const held = hold(ask);
  tally.holds(ask, held, shelf);
  tally.thinks =
    call.info.can?.reasoning !== false &&
    (!out || (call.seat["~"].endpoint.protocol?.client?.thinks?.(out, call) ?? true));
  if (budgeted && held.nano === null)
    fail("quota", `${call.id} has no known price, and this key has a budget. ${pricing(call)}`, {
      code: "unpriced_model",
      param: "model",
    });
  if (budgeted && unpriced.length > 0)
    fail(
      "quota",
      `${unpriced[0]}, which this request names, has no known price, and this key has a budget.`,
      {
        code: "unpriced_model",
        param: "model",
      },
    );
  const claims = limits.map((limit) => ({
    ...limit,
    take: take(limit, held.claim, tally.inputEstimate, held.output, survey.n),
  }));
  const command: Stamped<Reserve> = {
    do: "reserve",
    at,
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
    labels,
    claims,
    holdNano: held.nano,
    price: call.info.price ? priceHash(call.info.price) : null,
    asked: {
      model: x.model,
      frontend: x.frontend,
      protocol: x.protocol,
      lane: call.lane,
      stream: x.stream,
      ...(x.privacy !== "off" && { basis: factsOf(call.policy) }),
    },
  };
  const verdict = await gen.ledger.reserve(command, call.info.price);
  if (verdict.ok) {
    x["~"].stay.pass();
    if (verdict.limits) x["~"].limits = verdict.limits;
    return;
  }
  refuse(verdict.denied, verdict.retryAfterMs, ask, claims);
}

/** The line that is missing, as an operator writes it. */
function pricing(call: Attempt): string {
  const [price, what] =
    call.exchange.kind === "image"
      ? ['{ images: "…" }', "dollars each"]
      : ['{ input: "…", output: "…" }', "dollars per million tokens"];
  return (
    `In gateway.yaml, under providers.${call.provider}: ` +
    `models: { ${JSON.stringify(call.model)}: { price: ${price} } } (${what}; price: free if it costs nothing).`
  );
}

const ORDER = ["soft", "expected", "hard"] as const;
const stricter = (a: Ask["mode"], b: Ask["mode"]): Ask["mode"] =>
  ORDER.indexOf(b) > ORDER.indexOf(a) ? b : a;

function take(
  limit: Limit,
  claim: bigint | null,
  input: number,
  output: number | undefined,
  n: number | undefined,
): bigint {
  switch (limit.unit) {
    case "requests":
    case "concurrent":
      return 1n;
    case "input":
      return BigInt(input);
    case "output":
      return BigInt(output ?? 0);
    case "tokens":
      return BigInt(input + (output ?? 0));
    case "images":
      return BigInt(Math.ceil(n ?? 1));
    case "nano_usd":
      return claim ?? 0n;
  }
}

/** Which limit, its value, what is left, when it is back, and what would have fitted. */
function refuse(
  denied: LimitState,
  retryAfterMs: number,
  ask: Ask,
  claims: readonly { scope: string; unit: string; take: bigint }[],
): never {
  const resets = new Date(denied.resetsAt).toISOString();
  const details = {
    limit: {
      scope: denied.scope,
      unit: denied.unit,
      per: denied.per,
      max: String(denied.max),
      left: String(denied.left),
      resets_at: resets,
    },
  };
  if (denied.unit === "nano_usd") {
    const left = BigInt(denied.left);
    const wanted =
      claims.find((c) => c.unit === "nano_usd" && c.scope === denied.scope)?.take ?? 0n;
    const fits = outputThatFits(left, ask);
    return fail(
      "quota",
      `The budget of ${formatUsd(BigInt(denied.max))} a ${denied.per} (${denied.scope}) has ${formatUsd(left)} left; ` +
        `this request would reserve ${formatUsd(wanted)}.${fits > 0 ? ` With max_tokens of ${fits} it would fit.` : ""} It is back at ${resets}.`,
      { code: "insufficient_quota", details },
    );
  }
  const limit = error(
    "rate_limited",
    denied.unit === "concurrent"
      ? `More than ${denied.max} requests at once (${denied.scope}).`
      : `The limit of ${denied.max} ${denied.unit} a ${denied.per} (${denied.scope}) is reached; it is back at ${resets}.`,
    "rate_limit_exceeded",
  );
  Object.assign(faultOf(limit)!, { retryAfterMs, details });
  throw blame(limit, "caller");
}
