/** How one upstream's wire differs from the documented one, and how ours is shown to clients. */
export interface ResponsesDialect {
  /** Top-level fields that it answers with an error: left out, and said so. */
  drop?: readonly string[];
  /** false: it keeps nothing and knows no `store`. */
  store?: false;
  /**
   * How reasoning that is no digest is shown to clients. Every reader knows `summary`; `text` is the newer name, which
   * some know as `response.reasoning_text` and some do not know at all.
   */
  reasoning?: "summary" | "text";
}
