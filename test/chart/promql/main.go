// Prometheus' own parser: reads one expression a line, prints what is wrong with each that is.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	promql := parser.NewParser(parser.Options{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if _, err := promql.ParseExpr(lines.Text()); err != nil {
			fmt.Printf("%s: %s\n", lines.Text(), err)
		}
	}
}
