// A client that does not know whether its request arrived asks once more under the same Idempotency-Key. What has been billed
// is not billed again: it is told what became of it.
import { hash } from "node:crypto";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { ClaimOutcome } from "../claims.ts";
import type { HostExchange } from "../exchange.ts";

const LONGEST = 255;
const SOON_MS = 1_000;

/** Nothing to wait for where the client gave no name. */
export function claim(x: HostExchange): Promise<void> | undefined {
  const name = x["~"].req.headers["idempotency-key"];
  if (name === undefined || x.op !== "generate") return undefined;
  return claimed(x, String(name));
}

async function claimed(x: HostExchange, name: string): Promise<void> {
  const inner = x["~"];
  if (name === "" || name.length > LONGEST)
    fail("invalid", `An Idempotency-Key has 1 to ${LONGEST} characters.`, {
      code: "idempotency_key_invalid",
    });
  const who = x.identity!.id;
  const named = { who, name: hash("sha256", name), request: x.id };
  const body = hash("sha256", Buffer.concat([Buffer.from(`${x.path}\n`), inner.received!.raw]));
  const found = await inner.gen.claims.begin({ ...named, body });
  switch (found.state) {
    case "new":
      inner.claim = named;
      return;
    case "running":
      return fail("conflict", "A request with this Idempotency-Key is under way.", {
        code: "idempotency_in_flight",
        retryAfterMs: SOON_MS,
      });
    case "other":
      return fail("mismatch", "This Idempotency-Key was sent with another request before.", {
        code: "idempotency_mismatch",
      });
    case "over":
      return told(found.outcome);
  }
}

function told(outcome: ClaimOutcome): never {
  const { request, status, usage, costNano } = outcome;
  const counts = Object.fromEntries(
    Object.entries(usage).filter(([, count]) => count !== undefined),
  ) as JsonObject;
  return fail(
    "conflict",
    `A request with this Idempotency-Key was answered with ${status} as ${request} and billed once. Its answer was not kept.`,
    {
      code: "idempotency_done",
      details: { request, status, usage: counts, cost_nano_usd: costNano },
    },
  );
}

/** It failed and cost nothing: its name is free again before its client hears of that, and asks again. */
export function free(x: HostExchange): Promise<void> | undefined {
  const inner = x["~"];
  const { claim: named } = inner;
  if (!named || billedOf(x).length > 0) return undefined;
  inner.claim = undefined;
  return ended(x, named, undefined);
}

/** Its walk is over. */
export function release(x: HostExchange): void {
  const { claim: named, gone, res } = x["~"];
  if (!named) return;
  const billed = billedOf(x);
  const last = billed.at(-1);
  const cost = billed.reduce<bigint | null>(
    (sum, { costNano }) => (sum === null || costNano === null ? null : sum + costNano),
    0n,
  );
  void ended(
    x,
    named,
    last && {
      request: x.id,
      status: gone ? 499 : res.statusCode,
      usage: last.usage,
      costNano: cost === null ? null : String(cost),
    },
  );
}

const billedOf = (x: HostExchange) => x["~"].calls.filter(({ state }) => state !== "void");

/** A process that knows no more of names is about to end this one too. */
async function ended(
  x: HostExchange,
  named: NonNullable<HostExchange["~"]["claim"]>,
  outcome: ClaimOutcome | undefined,
): Promise<void> {
  const { claims, log } = x["~"].gen;
  try {
    await claims.end(named, outcome);
  } catch (err) {
    log.error({ request: x.id, err }, "the end of a request with an Idempotency-Key was not heard");
  }
}
