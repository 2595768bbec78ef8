// Writes docs/reference/provider-failures.md from the list of failures that `npm run rig faults` tests the gateway with.
//
//     npx node --conditions=tollgate-source .build/faults.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FAULTS, type Outcome } from "../test/rig/faults/failure-modes.ts";

export const PAGE = join(import.meta.dirname, "../docs/reference/provider-failures.md");

const INTRODUCTION = `# Provider failure modes

This page lists, for operators, what a client gets and how a call is billed for each failure of a provider. The list is generated from
\`npm run rig faults\`, which runs each failure against the gateway: through every frontend, with every provider protocol, streaming and non-streaming.

The outcomes are those of a single call (\`retries: { per_target: 1, total: 1 }\`). With retries and other candidates, a call that fails before its first token is
followed by [another one](../guides/fallback.md#retries).

| Term | Meaning |
|---|---|
| Status | An error with this status, in the client's protocol |
| complete | The complete response |
| unchanged | A response with the damaged bytes, because the protocol did not require the gateway to read them |
| partial, then error | Content, then an error in the client's protocol |
| void | Nothing is billed |
| estimated | The gateway counts the input and the output that was received |
| exact | Billed as the provider counted |

If several outcomes are listed, they depend on the protocol, or on whether content had been sent before the failure. Every wait ends within its limit under
[\`timeouts\`](../guides/fallback.md#timeouts), and the ledger entry is durable before the client has the end of its response.
`;
const HEAD = "| Failure | Non-streaming response | Stream | Ledger entry |";

const CLIENT = {
  served: "complete",
  passed: "unchanged",
  broken: "partial, then error",
} as const;

function describeOutcome({ client, of }: Outcome): string {
  const result = typeof client === "number" ? `${client}` : CLIENT[client];
  return of ? `${result} (${of})` : result;
}
const listDistinct = (all: readonly string[]): string => [...new Set(all)].join("; ");
const describeRow = ({ row, of }: Outcome): string => (of ? `${row} (${of})` : row);
const capitalize = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

/** Returns the text of the page. */
export const providerFailuresPage = (): string =>
  [
    INTRODUCTION,
    HEAD,
    "|---|---|---|---|",
    ...FAULTS.map(({ name, whole, stream }) => {
      const rows = listDistinct([...whole, ...stream].map(describeRow));
      return `| ${capitalize(name)} | ${listDistinct(whole.map(describeOutcome))} | ${listDistinct(stream.map(describeOutcome))} | ${rows} |`;
    }),
    "",
  ].join("\n");

if (import.meta.main) writeFileSync(PAGE, providerFailuresPage());
