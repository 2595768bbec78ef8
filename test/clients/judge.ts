// Requirements after every run of any client: it ended successfully and printed the model's text,
// upstream received everything that the client sent, each call is in the ledger with the upstream's
// counts, and the gateway logged no problem.
import assert from "node:assert/strict";
import type { JsonObject } from "tollgate/plugin";
import type { UpstreamRequest } from "tollgate/testing";
import { USAGE } from "./scripts.ts";
import type { Played, Served } from "./stage.ts";

export interface Expected {
  /** Expected output. */
  readonly says: string;
  /** Expected number of upstream calls. */
  readonly turns: number;
  /** Expected warnings by field, exactly. */
  readonly loses: readonly string[];
  /** Of the last turn, if different. */
  readonly losesLast?: readonly string[];
}

export function judge(played: Played, { says, turns, loses, losesLast = loses }: Expected): void {
  const { code, out, err, asked, served, complaints } = played;
  assert.equal(out.trim(), says, `it printed something else; beside it: ${err}`);
  assert.equal(code, 0, `it ended with ${code}: ${err}`);
  assert.deepEqual(complaints, [], "the daemon complained");
  assert.equal(asked.length, turns, "upstream was asked more or less often");
  assert.equal(served.length, turns, "the daemon served more or less");
  served.forEach((one, i) => {
    assert.equal(one.status, 200);
    const told = one.losses.map(({ field }) => field);
    const expected = i === turns - 1 ? losesLast : loses;
    assert.deepEqual(told.toSorted(), expected.toSorted(), "it told of other losses");
    assert.equal(one.calls.length, 1, "one call is enough");
    const { state, usage } = one.calls[0]!;
    assert.match(state, /^(exact|unpriced)$/, "an estimate, where upstream told the counts");
    assert.deepEqual(counted(usage), USAGE);
    heardAll(one, asked[i]!);
  });
}

const counted = (usage: JsonObject) =>
  Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0));

/** Every text of the client is in the upstream's request. */
function heardAll({ body, losses }: Served, asked: UpstreamRequest): void {
  const heard = textsOf(asked.json()).join("\n\n");
  const dropped = losses.flatMap(({ field, how }) => (how === "dropped" ? [field] : []));
  const { tools, client_metadata: _, metadata: __, ...rest } = body;
  const kept = (tools as { name?: string; type?: string }[]).filter(
    ({ name, type }) =>
      !dropped.some((field) => [`tools.${name}`, `tools.${type}`].includes(field)),
  );
  for (const text of textsOf({ kept, ...rest }))
    assert.ok(
      heard.includes(text) || OWN.test(text),
      `upstream never heard: ${text.slice(0, 200)}`,
    );
}

/**
 * Keys, proofs, and type names are no text, and reasoning is checked separately, because not every
 * protocol accepts it.
 */
const BESIDE =
  /^(type|role|model|id|call_id|tool_use_id|status|signature|encrypted_content|prompt_cache_key|include|format|enum|required|syntax|ttl|effort|display|mode|verbosity|keep|name|namespace|pattern|default|const|phase|summary|thinking|media_type)$/;

/** A client's telemetry for its own vendor, which no other vendor receives. */
const OWN = /^x-anthropic-billing-header:/;

function textsOf(value: unknown): string[] {
  // Some send an image as a URL, others as bytes.
  if (typeof value === "string") return [value.replace(/^data:[^,]*,/, "")];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    if (BESIDE.test(key)) return [];
    // A call's arguments are a string in some protocols and a value in others.
    return textsOf(key === "arguments" && typeof one === "string" ? JSON.parse(one) : one);
  });
}
