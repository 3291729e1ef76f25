// Where the page is: "#/phase/12/3/4" is {view: "phase", path: [12, 3, 4]}.

export function readAddress() {
  const path = location.hash.replace(/^#\/?/, "");
  const [view, ...rest] = path.split("/").filter(Boolean);
  return { view: view || "overview", path: rest.map(Number) };
}

export function address(view, ...path) {
  return `#/${[view, ...path].join("/")}`;
}
