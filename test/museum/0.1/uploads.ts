// As it was written for Tollgate 0.1. Nothing here is changed: what api 1 promised to it is kept.
import { defineFrontend, fail, isFilePart } from "tollgate/plugin";

/** A piece leaves when the client has room for it. */
async function* numbered(text: string): AsyncGenerator<string> {
  let n = 0;
  for (const line of text.split("\n")) yield `${++n} ${line}\n`;
}

export default defineFrontend({
  api: 1,
  name: "uploads",
  summary: "A file in, its lines with numbers out: POST /uploads",
  setup: () => ({
    routes: [
      {
        method: "POST",
        path: "/uploads",
        body: "multipart",
        handle(_x, { file }) {
          if (!isFilePart(file)) return fail("invalid", "file is a file.", { param: "file" });
          return {
            status: 200,
            headers: { "content-type": "text/plain; charset=utf-8" },
            body: numbered(file.data.toString()),
          };
        },
      },
    ],
    extractCredential: (headers, query) => (query.get("key") ?? headers.authorization) || undefined,
  }),
});
