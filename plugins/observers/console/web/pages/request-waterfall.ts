// Where a request's time went: each attempt on one scale, with its head, its first content and its end.
import { html } from "htm/preact";
import { Box } from "../parts/plain.ts";
import type { Seen, SeenCall } from "../shapes.ts";
import { span } from "../words.ts";
import { hasLost, hedgePart } from "./request-words.ts";

interface Piece {
  readonly kind: "own" | "ask" | "head" | "content" | "bad";
  readonly from: number;
  readonly to: number;
  readonly said: string;
}

interface Step {
  readonly name: string;
  readonly ms: number;
  readonly pieces: readonly Piece[];
}

/** Waiting for a head, from there to the first content, and to the end. What failed is one piece. */
function piecesOf(call: SeenCall): Piece[] {
  const { startMs, ms, fault } = call;
  const failed = hasLost(call) ? "canceled" : "failed";
  const end = startMs + ms.total;
  const head = startMs + (ms.head ?? ms.total);
  const content = startMs + (ms.content ?? ms.total);
  if (fault && ms.content === undefined)
    return [{ kind: "bad", from: startMs, to: end, said: `${failed} after ${span(ms.total)}` }];
  return [
    { kind: "ask", from: startMs, to: head, said: `head after ${span(ms.head)}` },
    {
      kind: "head",
      from: head,
      to: Math.max(head, content),
      said: `first content after ${span(ms.content)}`,
    },
    {
      kind: fault ? "bad" : "content",
      from: Math.max(head, content),
      to: end,
      said: `${fault ? "broke off" : "ended"} after ${span(ms.total)}`,
    },
  ];
}

function stepsOf(seen: Seen): Step[] {
  const { calls = [], ms = 0, ownMs = 0 } = seen;
  const first = calls[0]?.startMs ?? ms;
  return [
    {
      name: "before a call",
      ms: first,
      pieces: [
        {
          kind: "own",
          from: 0,
          to: first,
          said: `read, admitted, routed and reserved in ${span(first)}`,
        },
      ],
    },
    ...calls.map((call) => ({
      name: `${call.n} ${call.provider}/${call.model}${hedgePart(call) ? ` (${hedgePart(call)})` : ""}`,
      ms: call.ms.total,
      pieces: piecesOf(call),
    })),
    {
      name: "the gateway's own",
      ms: ownMs,
      pieces: [
        { kind: "own", from: 0, to: ownMs, said: `${span(ownMs)} in all, wherever they were` },
      ],
    },
  ];
}

export function Waterfall({ seen }: { seen: Seen }) {
  const steps = stepsOf(seen);
  const all = Math.max(
    seen.ms ?? 0,
    ...(seen.calls ?? []).map(({ startMs, ms }) => startMs + ms.total),
    0.001,
  );
  const at = (ms: number) => `${Math.min(100, (ms / all) * 100)}%`;
  return html`<${Box} title=${`Timeline, ${span(seen.ms)}`}>
    <ol class="fall">
      ${steps.map(
        ({ name, ms, pieces }) =>
          html`<li class="step" key=${name}>
            <span class="name" title=${name}>${name}</span>
            <span class="lane" aria-hidden="true"
              >${pieces.filter(({ from, to }) => to > from || to > 0).map(({ kind, from, to, said }) => html`<i key=${kind} class=${kind} title=${said} style=${{ left: at(from), width: at(Math.max(0, to - from)) }}></i>`)}</span
            >
            <span class="ms">${span(ms)}</span>
            <span class="unseen">${pieces.map(({ said }) => said).join(", ")}</span>
          </li>`,
      )}
    </ol>
    <ul class="row small quiet legend">
      <li class="row"><i class="dot s4"></i>gateway</li>
      <li class="row"><i class="dot s7"></i>to the head</li>
      <li class="row"><i class="dot s1"></i>to first content</li>
      <li class="row"><i class="dot s2"></i>to the end</li>
      <li class="row"><i class="dot bad"></i>failed</li>
    </ul>
  <//>`;
}
