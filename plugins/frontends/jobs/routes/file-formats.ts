// The two formats of files that clients know, on the same paths.
import { fail, type Json, type RequestHead } from "tollgate/plugin";
import type { StoredFile } from "../storage.ts";
import { readLimit } from "./request-fields.ts";

/** A format of files. */
export interface FileFormat {
  readonly prefix: string;
  encode(file: StoredFile): Json;
  encodeDeleted(id: string): Json;
  /** Returns a page of the files, which are listed newest first. */
  encodePage(files: readonly StoredFile[], x: RequestHead): Json;
}

const seconds = (at: number): number => Math.floor(at / 1_000);

export const openaiFiles: FileFormat = {
  prefix: "file-",
  encode: ({ id, bytes, createdAt, expiresAt, filename, purpose }) => ({
    id: `file-${id}`,
    object: "file",
    bytes,
    created_at: seconds(createdAt),
    ...(expiresAt !== undefined && { expires_at: seconds(expiresAt) }),
    filename,
    purpose,
    status: "processed",
    status_details: null,
  }),
  encodeDeleted: (id) => ({ id: `file-${id}`, object: "file", deleted: true }),
  encodePage(files, { query }) {
    const purpose = query.get("purpose");
    const order = query.get("order") ?? "desc";
    if (order !== "asc" && order !== "desc")
      fail("invalid", `order must be asc or desc, not "${order}".`, { param: "order" });
    const some = purpose === null ? files : files.filter((file) => file.purpose === purpose);
    const page = pageOf(order === "asc" ? some.toReversed() : some, {
      limit: readLimit(query, 10_000, { max: 10_000 }),
      after: query.get("after"),
    });
    return { object: "list", ...encodeList(page, openaiFiles) };
  },
};

export const anthropicFiles: FileFormat = {
  prefix: "file_",
  encode: ({ id, bytes, createdAt, filename, mime }) => ({
    id: `file_${id}`,
    type: "file",
    filename,
    mime_type: mime,
    size_bytes: bytes,
    created_at: new Date(createdAt).toISOString(),
    downloadable: true,
  }),
  encodeDeleted: (id) => ({ id: `file_${id}`, type: "file_deleted" }),
  encodePage(files, { query }) {
    const before = query.get("before_id");
    const after = query.get("page") ?? query.get("after_id");
    if (before !== null && after !== null)
      fail("invalid", "before_id and after_id cannot be used together.", { param: "before_id" });
    const limit = readLimit(query, 20, { max: 1_000 });
    if (before === null) {
      const list = encodeList(pageOf(files, { limit, after }), anthropicFiles);
      // Newer SDKs send the cursor as `page`.
      return { ...list, next_page: list.has_more ? list.last_id : null };
    }
    const { items, hasMore } = pageOf(files.toReversed(), { limit, after: before });
    return encodeList({ items: items.toReversed(), hasMore }, anthropicFiles);
  },
};

interface FilePage {
  readonly items: readonly StoredFile[];
  readonly hasMore: boolean;
}

const encodeList = ({ items, hasMore }: FilePage, { prefix, encode }: FileFormat) => ({
  data: items.map(encode),
  first_id: items[0] ? prefix + items[0].id : null,
  last_id: items.at(-1) ? prefix + items.at(-1)!.id : null,
  has_more: hasMore,
});

function pageOf(
  files: readonly StoredFile[],
  { limit, after }: { readonly limit: number; readonly after: string | null },
): FilePage {
  const id = after?.slice("file-".length);
  const start = id === undefined ? 0 : files.findIndex((file) => file.id === id) + 1;
  // An unknown cursor is that of a deleted file, or of another owner.
  if (id !== undefined && start === 0)
    fail("invalid", `Unknown file ID "${after}".`, { param: "after" });
  return { items: files.slice(start, start + limit), hasMore: files.length > start + limit };
}
