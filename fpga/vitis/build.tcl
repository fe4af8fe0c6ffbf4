# One block, from C simulation to an IP core. Run it as
#   vitis_hls -f build.tcl -tclargs TOP PART FOLDER [PERIOD]
# TOP:    settling_core, oscillator_attention or softmax_attention
# PART:   such as xc7a35ticsg324-1L
# FOLDER: holds instance.hpp, and the streams' files for C simulation
# PERIOD: of the clock in nanoseconds; 10 if it is not given

set arguments [lrange $argv [expr {[lsearch -exact $argv -tclargs] + 1}] end]
if {[llength $arguments] < 3 || [llength $arguments] > 4} {
    puts stderr "usage: vitis_hls -f build.tcl -tclargs TOP PART FOLDER \[PERIOD\]"
    exit 2
}
lassign $arguments top part folder period
if {$period eq ""} {
    set period 10
}
set sources [file dirname [file normalize [info script]]]
set folder [file normalize $folder]

cd $folder
open_project -reset $top
set_top $top
add_files $sources/$top.cpp -cflags "-std=c++14 -I$sources -I$folder"
add_files -tb $sources/testbench/$top.cpp -cflags "-std=c++14 -I$sources -I$folder"
open_solution -reset -flow_target vivado solution
set_part $part
create_clock -period $period -name default
csim_design -argv $folder
csynth_design
export_design -format ip_catalog
exit
