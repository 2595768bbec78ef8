// Timeline of a request: all attempts on one scale, with response headers, first token, and end.
import { html } from "htm/preact";
import { Box } from "../../parts/basics.ts";
import type { ObservedRequest, ObservedCall } from "../../api-types.ts";
import { formatDuration } from "../../format.ts";
import { hasLost, hedgeRole } from "./request-outcome.ts";

interface WaterfallSegment {
  readonly kind: "own" | "ask" | "head" | "content" | "bad";
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

interface WaterfallRow {
  readonly name: string;
  readonly ms: number;
  readonly segments: readonly WaterfallSegment[];
}

/**
 * Returns the segments of a call: until the response headers, until the first token, and until the
 * end. A call that failed before its first token has one segment.
 */
function callSegments(call: ObservedCall): WaterfallSegment[] {
  const { startMs, ms, fault } = call;
  const failed = hasLost(call) ? "canceled" : "failed";
  const end = startMs + ms.total;
  const head = startMs + (ms.headers ?? ms.total);
  const content = startMs + (ms.firstToken ?? ms.total);
  if (fault && ms.firstToken === undefined)
    return [
      { kind: "bad", from: startMs, to: end, label: `${failed} after ${formatDuration(ms.total)}` },
    ];
  return [
    { kind: "ask", from: startMs, to: head, label: `headers after ${formatDuration(ms.headers)}` },
    {
      kind: "head",
      from: head,
      to: Math.max(head, content),
      label: `first token after ${formatDuration(ms.firstToken)}`,
    },
    {
      kind: fault ? "bad" : "content",
      from: Math.max(head, content),
      to: end,
      label: `${fault ? "broke off" : "ended"} after ${formatDuration(ms.total)}`,
    },
  ];
}

function waterfallRows(seen: ObservedRequest): WaterfallRow[] {
  const { calls = [], ms = 0, overheadMs = 0 } = seen;
  const first = calls[0]?.startMs ?? ms;
  return [
    {
      name: "before a call",
      ms: first,
      segments: [
        {
          kind: "own",
          from: 0,
          to: first,
          label: `read, admitted, routed, and reserved in ${formatDuration(first)}`,
        },
      ],
    },
    ...calls.map((call) => ({
      name: `${call.n} ${call.provider}/${call.model}${hedgeRole(call) ? ` (${hedgeRole(call)})` : ""}`,
      ms: call.ms.total,
      segments: callSegments(call),
    })),
    {
      name: "gateway time",
      ms: overheadMs,
      segments: [
        {
          kind: "own",
          from: 0,
          to: overheadMs,
          label: `${formatDuration(overheadMs)} in total over the request`,
        },
      ],
    },
  ];
}

export function Waterfall({ seen }: { seen: ObservedRequest }) {
  const steps = waterfallRows(seen);
  const all = Math.max(
    seen.ms ?? 0,
    ...(seen.calls ?? []).map(({ startMs, ms }) => startMs + ms.total),
    0.001,
  );
  const at = (ms: number) => `${Math.min(100, (ms / all) * 100)}%`;
  return html`<${Box} title=${`Timeline, ${formatDuration(seen.ms)}`}>
    <ol class="fall">
      ${steps.map(
        ({ name, ms, segments }) =>
          html`<li class="step" key=${name}>
            <span class="name" title=${name}>${name}</span>
            <span class="lane" aria-hidden="true"
              >${segments.filter(({ from, to }) => to > from || to > 0).map(({ kind, from, to, label }) => html`<i key=${kind} class=${kind} title=${label} style=${{ left: at(from), width: at(Math.max(0, to - from)) }}></i>`)}</span
            >
            <span class="ms">${formatDuration(ms)}</span>
            <span class="unseen">${segments.map(({ label }) => label).join(", ")}</span>
          </li>`,
      )}
    </ol>
    <ul class="row small quiet legend">
      <li class="row"><i class="dot s4"></i>gateway</li>
      <li class="row"><i class="dot s7"></i>to headers</li>
      <li class="row"><i class="dot s1"></i>to first token</li>
      <li class="row"><i class="dot s2"></i>to the end</li>
      <li class="row"><i class="dot bad"></i>failed</li>
    </ul>
  <//>`;
}
