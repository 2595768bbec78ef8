// A plugin's tarball next to a gateway installed from its own: found by its name, called, and
// billed.
import { startUpstream } from "tollgate/testing";
import type { AuthoredKind } from "./template-kinds.ts";
import { operator, serving, type Workshop } from "./clean-install.ts";

/** Returns the response and the ledger's content. Throws if it is not found or does not respond. */
export async function answered(
  of: Workshop,
  kind: AuthoredKind,
  tarball: string,
): Promise<{ readonly text: string; readonly calls: number; readonly usage: string }> {
  const folder = await operator(of, "operator", [tarball]);
  await using up = await startUpstream(kind.upstream?.() ?? {});
  await using at = await serving(folder, kind.yaml(up.url), { ACME: "canary-acme-7f3a91" });
  const response = await fetch(`${at.url}${kind.path ?? "/v1/chat/completions"}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
    body: JSON.stringify({
      model: kind.model ?? "demo/echo",
      messages: [{ role: "user", content: "Good morning" }],
    }),
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`it was answered ${response.status}: ${body}`);
  const said = JSON.parse(body).choices[0].message.content as string;
  const due = kind.says ?? "Good morning";
  if (said !== due) throw new Error(`it said ${JSON.stringify(said)}, not ${JSON.stringify(due)}`);
  const usage = await at.tollgate("usage", "--by", "model", "--json");
  const calls = (JSON.parse(usage.out) as { rows?: { calls: number }[] }).rows ?? [];
  return { text: said, calls: calls.reduce((sum, row) => sum + row.calls, 0), usage: usage.out };
}
