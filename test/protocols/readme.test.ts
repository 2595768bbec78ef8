// The README's tables are what the codecs do. UPDATE_README=1 writes them anew.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { table as answersFrom } from "./answer-fields.ts";
import { table as fromAny } from "./canonical.ts";
import { upstreams } from "./codecs.ts";
import { table as fromChat } from "./chat-completions/fields.ts";
import { table as fromCompletions } from "./completions/fields.ts";
import { table as fromEmbeddings } from "./embeddings/fields.ts";
import { table as fromGemini } from "./gemini/fields.ts";
import { table as fromEdits } from "./images/fields.ts";
import { table as fromMessages } from "./messages/fields.ts";
import { table as fromRerank } from "./rerank/fields.ts";
import { table as fromResponses } from "./responses/fields.ts";
import { table as fromSpeech } from "./speech/fields.ts";
import { table as fromTranscriptions } from "./transcriptions/fields.ts";

const FILE = new URL("../../src/protocols/README.md", import.meta.url);

const TABLES: readonly (readonly [name: string, table: () => string])[] = [
  ["any protocol", fromAny],
  ["chat-completions", fromChat],
  ["messages", fromMessages],
  ["responses", fromResponses],
  ["embeddings", fromEmbeddings],
  ["speech", fromSpeech],
  ["transcriptions", fromTranscriptions],
  ["rerank", fromRerank],
  ["completions", fromCompletions],
  ["images/edits", fromEdits],
  ["gemini", fromGemini],
  ...Object.keys(upstreams).map((id) => [`answers of ${id}`, answersFrom(id)] as const),
];

test.each(TABLES)("the table from %s", (name, table) => {
  const text = readFileSync(FILE, "utf8");
  const place = new RegExp(`(<!-- verdicts from ${name} -->\n\n)[^]*?(\n\n<!-- end -->)`);
  const [, head, tail] = place.exec(text) ?? expect.unreachable(`no place for ${name}`);
  if (process.env["UPDATE_README"])
    writeFileSync(
      FILE,
      text.replace(place, () => `${head}${table()}${tail}`),
    );
  else expect(text).toContain(`${head}${table()}${tail}`);
});
