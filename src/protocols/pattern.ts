/** Whether a model's name fits a pattern, in which one `*` stands for anything. */
export function fits(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  return (
    model.length >= pattern.length - 1 &&
    model.startsWith(pattern.slice(0, star)) &&
    model.endsWith(pattern.slice(star + 1))
  );
}
