package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	columns     = 2
	width       = 9.4 * vg.Inch
	panelHeight = 1.8 * vg.Inch
	header      = 0.75 * vg.Inch
	highest     = 42 // of the vertical axes
)

// The colours differ in how dark they are, so that grey print tells them apart.
var (
	offeredColor  = color.Gray{0xd4}
	admittedColor = color.RGBA{0x1f, 0x5a, 0x92, 0xff}
	recentColor   = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	limitColor    = color.Black
	dashes        = []vg.Length{4, 3}
)

// drawSVG draws all subjects, one panel each.
func drawSVG(w io.Writer) error {
	all, err := subjects()
	if err != nil {
		return err
	}
	rows := (len(all) + columns - 1) / columns
	canvas := vgsvg.New(width, header+vg.Length(rows)*panelHeight)
	if err := drawAll(draw.New(canvas), all, rows); err != nil {
		return err
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Readers without this font get one of the same widths.
	_, err = w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func drawAll(c draw.Canvas, all []subject, rows int) error {
	at := traffic()
	grid := make([][]*plot.Plot, rows)
	for i, s := range all {
		passed, err := s.passes(at)
		if err != nil {
			return err
		}
		p, err := panel(s.name, at, passed)
		if err != nil {
			return err
		}
		if i/columns == rows-1 {
			p.X.Label.Text = "time (s)"
		}
		if i%columns == 0 {
			p.Y.Label.Text = "requests"
		}
		grid[i/columns] = append(grid[i/columns], p)
	}
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: 14, PadY: 12, PadTop: header, PadLeft: 6, PadRight: 10, PadBottom: 4}
	for row, canvases := range plot.Align(grid, tiles, c) {
		for column, cell := range canvases {
			grid[row][column].Draw(cell)
		}
	}
	heading(c, len(at))
	return nil
}

// panel draws what comes and what passes in each second, and what has passed in
// the period up to each moment.
func panel(name string, at, passed []time.Duration) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: %d pass, at most %d in any 10 s", name, len(passed), most(passed))
	p.Title.TextStyle = style(10)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	p.Title.Padding = 5
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, length.Seconds(), 0, highest
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = style(9).Font, style(8.5).Font
	}
	p.X.Tick.Marker = ticks(10, int(length.Seconds()))
	p.Y.Tick.Marker = ticks(10, highest)

	offered, err := bars(at, offeredColor)
	if err != nil {
		return nil, err
	}
	admitted, err := bars(passed, admittedColor)
	if err != nil {
		return nil, err
	}
	var sums plotter.XYs
	for t := time.Duration(0); t <= length; t += period / 40 {
		sums = append(sums, plotter.XY{X: t.Seconds(), Y: float64(within(passed, t-period+1, t+1))})
	}
	recent, err := plotter.NewLine(sums)
	if err != nil {
		return nil, err
	}
	recent.LineStyle = draw.LineStyle{Color: recentColor, Width: 1.6}
	limit, err := plotter.NewLine(plotter.XYs{{X: 0, Y: count}, {X: length.Seconds(), Y: count}})
	if err != nil {
		return nil, err
	}
	limit.LineStyle = draw.LineStyle{Color: limitColor, Width: 0.8, Dashes: dashes}
	p.Add(offered, admitted, limit, recent)
	return p, nil
}

// bars is how many of these times are in each second, as the outline of a step
// curve.
func bars(at []time.Duration, c color.Color) (*plotter.Polygon, error) {
	outline := plotter.XYs{{X: 0, Y: 0}}
	for t := time.Duration(0); t < length; t += time.Second {
		n := float64(within(at, t, t+time.Second))
		outline = append(outline, plotter.XY{X: t.Seconds(), Y: n}, plotter.XY{X: t.Seconds() + 1, Y: n})
	}
	p, err := plotter.NewPolygon(append(outline, plotter.XY{X: length.Seconds(), Y: 0}))
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// heading is the title and what the colours mean.
func heading(c draw.Canvas, requests int) {
	top := c.Max.Y - 18
	c.FillText(style(13), vg.Point{X: c.Min.X + 12, Y: top},
		fmt.Sprintf("The same %d requests under a limit of %d in 10 s", requests, count))
	x, y := c.Min.X+12, top-20
	entry := func(sample func(left, right vg.Length), label string) {
		sample(x, x+18)
		c.FillText(style(9.5), vg.Point{X: x + 23, Y: y}, label)
		x += 23 + style(9.5).Width(label) + 18
	}
	box := func(fill color.Color) func(left, right vg.Length) {
		return func(left, right vg.Length) {
			c.FillPolygon(fill, []vg.Point{{X: left, Y: y - 1}, {X: right, Y: y - 1}, {X: right, Y: y + 7}, {X: left, Y: y + 7}})
		}
	}
	line := func(l draw.LineStyle) func(left, right vg.Length) {
		return func(left, right vg.Length) { c.StrokeLine2(l, left, y+3, right, y+3) }
	}
	entry(box(offeredColor), "come in a second")
	entry(box(admittedColor), "pass in a second")
	entry(line(draw.LineStyle{Color: recentColor, Width: 1.6}), "passed in the last 10 s")
	entry(line(draw.LineStyle{Color: limitColor, Width: 0.8, Dashes: dashes}), fmt.Sprintf("the limit: %d in 10 s", count))
}

func style(size vg.Length) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: plot.DefaultTextHandler,
	}
}

func ticks(step, last int) plot.ConstantTicks {
	var marks plot.ConstantTicks
	for n := 0; n <= last; n += step {
		marks = append(marks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return marks
}
