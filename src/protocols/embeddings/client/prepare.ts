// The dialect, on both lanes: what a host says differently is said so, and what it cannot read is not sent.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { number, text } from "../../json.ts";
import type { EmbeddingDialect } from "../dialect.ts";
import { taskOf, wordFor } from "../tasks.ts";
import { inputsIn } from "../vectors.ts";
import { FORM, TASK_FIELDS } from "../words.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: EmbeddingDialect): void {
  if (dialect.ids === false && inputsIn(out.get("input")).some((one) => typeof one !== "string"))
    fail("unsupported", `${of.model} reads text, not ids of tokens.`, {
      param: "input",
      code: "unsupported_input",
    });
  form(out, dialect);
  dimensions(out, of, dialect);
  task(out, of, dialect);
  truncation(out, of, dialect);
  for (const field of dialect.drop ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (value !== null) of.lose(field, "dropped");
  }
}

/** A form that this host refuses is not asked for: the client gets it all the same. */
function form(out: Outgoing, { forms }: EmbeddingDialect): void {
  const asked = out.get(FORM);
  if (forms && asked !== undefined && !forms.some((one) => one === asked)) out.drop(FORM);
}

function dimensions(out: Outgoing, of: CallContext, { dimensions: own }: EmbeddingDialect): void {
  const width = number(out.get("dimensions")) ?? number(out.get("output_dimension"));
  if (width === undefined) return;
  if (own === false)
    fail("unsupported", `${of.model} makes vectors of one width.`, {
      param: "dimensions",
      code: "unsupported_dimensions",
    });
  const [name, other] =
    own === "output_dimension"
      ? (["output_dimension", "dimensions"] as const)
      : (["dimensions", "output_dimension"] as const);
  if (out.get(name) !== width) out.set(name, width);
  if (out.get(other) !== undefined) out.drop(other);
}

/** In the host's own field and word, whichever vendor's the client wrote. */
function task(out: Outgoing, of: CallContext, { task: own }: EmbeddingDialect): void {
  if (own === undefined) return;
  for (const field of TASK_FIELDS) {
    const said = out.get(field);
    if (said === undefined) continue;
    const known = taskOf(said);
    if (own === false) {
      out.drop(field);
      if (said !== null) of.lose(field, "dropped");
    } else if (known !== undefined) {
      const word = wordFor(known, own.words, of, field);
      if (field !== own.field || word === undefined) out.drop(field);
      if (word !== undefined && word !== out.get(own.field)) out.set(own.field, word);
    } else if (field !== own.field) {
      out.drop(field);
      if (said !== null) of.lose(field, "dropped");
    }
  }
}

function truncation(out: Outgoing, of: CallContext, { truncate }: EmbeddingDialect): void {
  const said = out.get("truncate");
  if (truncate === undefined || said === undefined) return;
  out.drop("truncate");
  const word = text(said)?.toLowerCase();
  if (word === "start") of.lose("truncate", "approximated", "truncated_at_the_end");
  if (typeof said === "boolean" || word !== undefined)
    out.set(truncate, said === true || (word !== undefined && word !== "none"));
}
