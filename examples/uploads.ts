// examples/uploads.ts
import { defineFrontend, fail, isFilePart } from "tollgate/plugin";

/** Each chunk is requested when the client can receive it. */
async function* numbered(text: string): AsyncGenerator<string> {
  let n = 0;
  for (const line of text.split("\n")) yield `${++n} ${line}\n`;
}

export default defineFrontend({
  api: 1,
  name: "uploads",
  summary: "POST /uploads: returns the lines of a file with line numbers",
  setup: () => ({
    routes: [
      {
        method: "POST",
        path: "/uploads",
        body: "multipart",
        handle(_x, { file }) {
          if (!isFilePart(file)) return fail("invalid", "file must be a file.", { param: "file" });
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
