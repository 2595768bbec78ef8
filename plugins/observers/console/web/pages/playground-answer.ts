// What a model has answered: words, thought, calls of tools, pictures, vectors, an order, a judgement, sound; what was used and how
// long it took.
import { html } from "htm/preact";
import { Box, Code, Empty, Facts, Mark, NoteBox } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { span } from "../words.ts";
import { type Heard, linesOf } from "./playground-frontend.ts";
import type { Sent } from "./playground-send.ts";

/** PNG, JPEG, WebP by their first bytes; an address is not fetched, since this page reaches nothing but its gateway. */
const PICTURE: readonly (readonly [begin: string, type: string])[] = [
  ["iVBOR", "png"],
  ["/9j/", "jpeg"],
  ["UklGR", "webp"],
];
const addressOf = (picture: string): string | undefined => {
  const type = PICTURE.find(([begin]) => picture.startsWith(begin))?.[1];
  return type && `data:image/${type};base64,${picture}`;
};

/** Of a vector: enough to see that it is one. */
const FIRST = 6;

const Vectors = ({ of }: { of: Heard["vectors"] }) =>
  of.map(
    (vector, i) =>
      html`<p key=${i}>
        <span class="quiet small">${i + 1}. ${vector.length} numbers</span><br />
        <code class="break"
          >${vector
            .slice(0, FIRST)
            .map((number) => number.toPrecision(4))
            .join(", ")}${vector.length > FIRST && ", …"}</code
        >
      </p>`,
  );

type Ranked = Heard["ranked"][number];
const Order = ({ of, documents }: { of: Heard["ranked"]; documents: string }) => {
  const lines = linesOf(documents);
  return html`<ol class="ranked">
    ${of.map(
      ({ index, score }: Ranked) =>
        html`<li key=${index}>
          ${lines[index] ?? `Document ${index + 1}`}
          <span class="quiet small">${score.toFixed(4)}</span>
        </li>`,
    )}
  </ol>`;
};

type Judged = Heard["judged"][number];
const VERDICTS: readonly Column<Judged>[] = [
  { name: "Category", head: true, by: ({ name }) => name, of: ({ name }) => name },
  {
    name: "Score",
    number: true,
    by: ({ score }) => score,
    of: ({ score }) => score.toFixed(3),
  },
  {
    name: "Flagged",
    by: ({ flagged }) => Number(flagged),
    of: ({ flagged }) => (flagged ? html`<${Mark} tone="bad">flagged<//>` : "no"),
  },
];

export function Answer({ sent }: { sent: Sent | undefined }) {
  if (!sent)
    return html`<${Box} title="Answer"
      ><${Empty} of="playground"
        ><p>
          What you ask is sent as any client sends it: with your key, by its limits, and with a row
          in the ledger. It is shown here and kept nowhere.
        </p><//
      ><//
    >`;
  const { heard, status, ended, first } = sent;
  const busy = ended === undefined && !sent.problem;
  const marks = html`<span class="row"
    >${status !== undefined && html`<${Mark} tone=${status < 400 ? "good" : "bad"}>${status}<//>`}${busy && html`<${Mark} tone="accent">answering<//>`}</span
  >`;
  return html`<${Box} title="Answer" actions=${marks}>
    <div class="stack">
      ${heard.error && html`<${NoteBox} tone="bad"><p>${heard.error}</p><//>`}
      ${
        heard.thought &&
        html`<details>
          <summary class="small quiet">Thought</summary>
          <p class="answer quiet small">${heard.thought}</p>
        </details>`
      }
      <div
        class="answer ${busy ? "streaming" : ""}"
        aria-live="polite"
        aria-busy=${busy ? "true" : "false"}
        tabindex="0"
        role="region"
        aria-label="Answer"
      >
        ${heard.text}${heard.pictures.map((picture, i) => {
          const address = addressOf(picture);
          return address
            ? html`<img key=${i} src=${address} alt=${`Picture ${i + 1} of the answer`} />`
            : html`<p class="small break" key=${i}>A picture at ${picture.slice(0, 300)}</p>`;
        })}
        ${heard.vectors.length > 0 && html`<${Vectors} of=${heard.vectors} />`}
        ${heard.ranked.length > 0 && html`<${Order} of=${heard.ranked} documents=${sent.documents} />`}
        ${heard.sound && html`<audio controls src=${heard.sound} aria-label="Sound of the answer"></audio>`}
      </div>
      ${heard.judged.length > 0 && html`<${Table} label="Judgement" columns=${VERDICTS} rows=${heard.judged} id=${({ name }: Judged) => name} />`}
      ${heard.calls && html`<${Code} wrap=${true} label="Calls of tools" text=${heard.calls} />`}
      <${Facts}
        of=${[
          ["First bytes", first === undefined ? undefined : span(first)],
          ["Whole", ended === undefined ? undefined : span(ended)],
          [
            "Used",
            heard.usage
              ? html`<code class="break">${JSON.stringify(heard.usage)}</code>`
              : undefined,
          ],
          ["Privacy", sent.headers["service-zdr"]],
        ]}
      />
    </div>
  <//>`;
}
