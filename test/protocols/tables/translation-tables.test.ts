// The tables of docs/reference/translation are generated from the codecs. UPDATE_README=1 updates them.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { table as answersFrom } from "./answer-fields.ts";
import { table as fromAny } from "./canonical.ts";
import { upstreams } from "../generators/codecs.ts";
import { table as fromChat } from "../chat-completions/fields.ts";
import { table as fromCompletions } from "../completions/fields.ts";
import { table as fromEmbeddings } from "../embeddings/fields.ts";
import { table as fromGemini } from "../gemini/fields.ts";
import { table as fromEdits } from "../images/fields.ts";
import { table as fromMessages } from "../messages/fields.ts";
import { table as fromRerank } from "../rerank/fields.ts";
import { table as fromResponses } from "../responses/fields.ts";
import { table as fromSpeech } from "../speech/fields.ts";
import { table as fromTranscriptions } from "../transcriptions/fields.ts";

const PAGES = new URL("../../../docs/reference/translation/", import.meta.url);

type Table = readonly [page: string, name: string, table: () => string];

const TABLES: readonly Table[] = [
  ["requests", "any protocol", fromAny],
  ["requests", "chat-completions", fromChat],
  ["requests", "messages", fromMessages],
  ["requests", "responses", fromResponses],
  ["requests", "gemini", fromGemini],
  ...Object.keys(upstreams).map((id): Table => ["responses", `answers of ${id}`, answersFrom(id)]),
  ["other-operations", "embeddings", fromEmbeddings],
  ["other-operations", "speech", fromSpeech],
  ["other-operations", "transcriptions", fromTranscriptions],
  ["other-operations", "rerank", fromRerank],
  ["other-operations", "completions", fromCompletions],
  ["other-operations", "images/edits", fromEdits],
];

test.each(TABLES)("page %s has the current table of %s", (page, name, table) => {
  const file = new URL(`${page}.md`, PAGES);
  const text = readFileSync(file, "utf8");
  const place = new RegExp(`(<!-- verdicts from ${name} -->\n\n)[^]*?(\n\n<!-- end -->)`);
  const [, head, tail] = place.exec(text) ?? expect.unreachable(`no place for ${name}`);
  if (process.env["UPDATE_README"])
    writeFileSync(
      file,
      text.replace(place, () => `${head}${table()}${tail}`),
    );
  else expect(text).toContain(`${head}${table()}${tail}`);
});
